"""Which error means which status."""

from __future__ import annotations

import pytest

from sprocket.base.errors import (
    CallTimeout,
    ConnectFailed,
    NoPermission,
    ReplyError,
    RouteNotFound,
    TopicNotFound,
)
from sprocket.proxy.messages import rocketmq_pb2 as pb
from sprocket.proxy.messages.statuses import (
    CallRefused,
    status,
    status_of_entries,
    status_of_error,
)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (CallRefused(pb.ILLEGAL_TOPIC, "no topic"), 40002),
        (TopicNotFound("no"), 40402),
        (RouteNotFound("no"), 40402),
        (ReplyError.of(2, "busy"), 42900),
        (ReplyError.of(3, "unknown"), 50100),
        (ReplyError.of(26, "no group"), 40403),
        (NoPermission("no"), 50001),
        (CallTimeout("late"), 50400),
        (ConnectFailed("away"), 50001),
        (ValueError("secret"), 50001),
    ],
)
def test_the_codes_are_those_of_rocketmqs_proxy(error: Exception, code: int) -> None:
    assert status_of_error(error).code == code


def test_an_error_that_nobody_foresaw_does_not_say_what_it_is() -> None:
    assert status_of_error(ValueError("secret")).message == "internal error"


def test_a_text_is_cut() -> None:
    assert len(status_of_error(ReplyError("x" * 100_000)).message) == 1000


def test_entries_have_one_code_or_many() -> None:
    assert status_of_entries([pb.OK, pb.OK], "empty") == status(pb.OK, "OK")
    assert status_of_entries([pb.OK, pb.FORBIDDEN], "empty").code == pb.MULTIPLE_RESULTS
    assert status_of_entries([], "empty") == status(pb.INTERNAL_SERVER_ERROR, "empty")
