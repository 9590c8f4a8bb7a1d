from __future__ import annotations

from collections.abc import Iterator

import pytest

from sprocket.base.backoff import pauses
from sprocket.base.errors import (
    CallTimeout,
    ConnectFailed,
    ConnectionLost,
    NoPermission,
    RouteNotFound,
    ServiceNotAvailable,
    SlaveNotAvailable,
    SprocketError,
    SystemBusy,
    SystemFailure,
    TopicNotFound,
    UsageError,
)
from sprocket.clientcore.attempts import Attempts, is_refusal, is_shut_out, may_pass


def growing() -> Iterator[float]:
    return pauses(1.0, 4.0)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (CallTimeout(), True),
        (SystemBusy(), True),
        (TopicNotFound(), True),
        (RouteNotFound(), True),
        (NoPermission(), False),
        (UsageError(), False),
    ],
)
def test_what_may_pass(error: SprocketError, expected: bool) -> None:
    assert may_pass(error) is expected
    assert Attempts(1, growing()).another(error, "a") is expected


def test_there_are_as_many_attempts_as_retries_and_one() -> None:
    attempts = Attempts(2, growing())
    assert [attempts.another(SystemBusy(), "a") for _ in range(3)] == [True, True, False]
    assert attempts.count == 3


def test_another_broker_is_tried_at_once_and_one_that_failed_after_growing_pauses() -> None:
    attempts = Attempts(9, growing())
    attempts.another(ConnectionLost(), "a")
    assert attempts.failed_at == "a"
    assert attempts.pause("b") == 0
    attempts.another(ConnectionLost(), "b")
    assert [attempts.pause(broker) for broker in "abc"] == [1.0, 2.0, 0]


def test_a_search_for_a_broker_that_failed_is_not_repeated_at_once() -> None:
    attempts = Attempts(9, growing())
    attempts.another(RouteNotFound())
    assert attempts.pause() == 1.0
    assert attempts.pause("a") == 0


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ConnectFailed(), True),
        (SystemBusy("[REJECTREQUEST]system busy, start flow control for a while"), True),
        (ServiceNotAvailable(), True),
        (SlaveNotAvailable("Slave Broker can not end transaction"), True),
        (SystemFailure("in-sync replicas not enough"), True),
        (SystemFailure("something else"), False),
        (ConnectionLost(), False),
        (CallTimeout(), False),
        (TopicNotFound(), False),
    ],
)
def test_a_refusal_is_what_was_certainly_not_carried_out(
    error: SprocketError, expected: bool
) -> None:
    assert is_refusal(error) is expected


def test_with_a_deadline_refusals_do_not_count_unless_nothing_may_be_repeated() -> None:
    attempts = Attempts(1, growing(), has_deadline=True)
    assert all(attempts.another(SystemBusy(), "a") for _ in range(9))
    assert attempts.another(ConnectionLost(), "a")
    assert not attempts.another(ConnectionLost(), "a")
    assert attempts.pause("a") == 1.0
    assert not Attempts(0, growing(), has_deadline=True).another(SystemBusy(), "a")


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (NoPermission("User:a has no permission to access Topic:t from 10.0.0.1"), True),
        (NoPermission("there is no user 'a' with this secret key: check signature failed."), True),
        (NoPermission("the request is not signed: the client needs an access key"), True),
        (NoPermission("User:a is disabled."), True),
        (SystemFailure("org.apache.rocketmq.acl.common.AclException: No acl config for a"), True),
        (NoPermission("the broker[10.0.0.1] sending message is forbidden"), False),
        (NoPermission("subscription group no permission, g"), False),
        (SystemFailure("check signature"), False),
        (ConnectFailed("permission to access"), False),
    ],
)
def test_access_control_is_recognised_by_its_words(error: SprocketError, expected: bool) -> None:
    assert is_shut_out(error) is expected
