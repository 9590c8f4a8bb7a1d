"""Sessions live as long as they are used, and log-ins cannot be guessed at will."""

from __future__ import annotations

import pytest

from sprocket.console.web.sessions import Sessions, TooManyAttempts
from sprocket.protocol.signing import Signer

ANNE = Signer("anne", "secret-of-anne")
HOUR = 3_600_000


class Time:
    now = 1_000_000

    def __call__(self) -> int:
        return self.now


def test_a_token_leads_to_the_user_until_it_ends() -> None:
    sessions = Sessions(now_ms=Time())
    token = sessions.begin(ANNE)
    session = sessions.of_token(token)
    assert session is not None
    assert (session.user, session.caller.signer) == ("anne", ANNE)
    assert "secret-of-anne" not in repr(session.caller)
    sessions.end(token)
    assert sessions.of_token(token) is None
    assert not session.is_open
    assert sessions.of_token("guessed") is None
    assert sessions.of_token(None) is None
    assert sessions.anybody.user is None


def test_a_session_that_is_not_used_ends() -> None:
    time = Time()
    sessions = Sessions(now_ms=time)
    token = sessions.begin(ANNE)
    for _ in range(3):
        time.now += 7 * HOUR
        assert sessions.of_token(token) is not None
    session = sessions.of_token(token)
    assert session is not None
    time.now += 9 * HOUR
    # A page that is still open cannot ask either, nor revive the session.
    assert not session.may_ask(time.now)
    assert sessions.of_token(token) is None
    assert sessions.anybody.may_ask(time.now)


def test_of_too_many_sessions_the_least_used_goes() -> None:
    sessions = Sessions(now_ms=Time())
    first, second = sessions.begin(ANNE), sessions.begin(ANNE)
    sessions.of_token(first)
    for _ in range(999):
        sessions.begin(ANNE)
    assert sessions.of_token(first) is not None
    assert sessions.of_token(second) is None


def test_after_failures_the_next_attempt_waits() -> None:
    time = Time()
    sessions = Sessions(now_ms=time)
    for _ in range(10):
        sessions.check_attempts("user anne", "address 10.0.0.1")
        sessions.count_failure("user anne", "address 10.0.0.1")
    with pytest.raises(TooManyAttempts):
        sessions.check_attempts("user bob", "address 10.0.0.1")
    sessions.check_attempts("user bob", "address 10.0.0.2")
    time.now += 61_000
    sessions.check_attempts("user anne", "address 10.0.0.1")
