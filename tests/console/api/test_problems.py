"""Each error is a problem with a status, and with the setting to change if there is one."""

from __future__ import annotations

import msgspec
import pytest

from sprocket.admin.caller import BrokersFailed
from sprocket.admin.topic_changes import UnreadQueues
from sprocket.base.errors import (
    CallTimeout,
    ConnectFailed,
    NoPermission,
    ReplyError,
    RequestNotSupported,
    SprocketError,
    SystemBusy,
    TopicNotFound,
    UsageError,
)
from sprocket.console.api.problems import ApiRefusal, problem_of


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (UsageError("x"), 422),
        (UnreadQueues("x"), 409),
        (TopicNotFound("x"), 404),
        (NoPermission("x"), 403),
        (RequestNotSupported("x"), 501),
        (SystemBusy("x"), 503),
        (CallTimeout("x"), 504),
        (ConnectFailed("x"), 502),
        (ReplyError("x", 9), 502),
        (SprocketError("x"), 500),
        (ApiRefusal(401, "x"), 401),
    ],
)
def test_an_error_has_its_status(error: SprocketError, status: int) -> None:
    problem = problem_of(error)
    assert problem.status == status
    assert problem.detail.startswith("x")
    assert problem.title


def test_what_to_change_is_named() -> None:
    assert problem_of(UnreadQueues("x")).setting == "may_hide"
    assert "policies" in (problem_of(NoPermission("x")).setting or "")
    assert problem_of(ApiRefusal(403, "x", setting="--y")).setting == "--y"


def test_what_was_done_nevertheless_is_told() -> None:
    problem = problem_of(BrokersFailed(["a"], {"b": CallTimeout("late")}))
    assert msgspec.to_builtins(problem) == {
        "title": "A broker failed or refused",
        "status": 502,
        "detail": "only a answered; failed at b (b: late)",
        "done": ["a"],
        "failed": {"b": "late"},
    }


def test_a_long_text_from_elsewhere_is_cut() -> None:
    assert len(problem_of(UsageError("x" * 100_000)).detail) == 2_000
