"""Who looks at the console: sessions by a random token in a cookie, each with its user's keys.

Keys are in memory only. A session ends by logging out, after a time without a request, or with the
console.
"""

from __future__ import annotations

import hashlib
import secrets
from collections import OrderedDict, deque
from collections.abc import Callable

from sprocket.base.errors import SprocketError
from sprocket.console.api.callers import ApiCaller
from sprocket.protocol.signing import Signer

#: Sessions at the same time, and how long one lives without a request, ms.
_SESSIONS_MAX, _IDLE_MS = 1_000, 8 * 3_600_000
#: Failed attempts to log in within a time, ms, after which the next must wait.
_ATTEMPTS_MAX, _ATTEMPTS_MS = 10, 60_000
_NAMES_MAX = 10_000


class TooManyAttempts(SprocketError):
    """Somebody has tried to log in too often."""


class ConsoleSession:
    """One who has logged in, or anybody, where the brokers know no users.

    Attributes:
        caller: in whose name the console asks.
        is_open: whether it may still ask; it may not after it has ended.
        used_ms: when it made its last request, ms since 1970 UTC.
    """

    def __init__(self, caller: ApiCaller, now_ms: int) -> None:
        self.caller = caller
        self.is_open = True
        self.used_ms = now_ms

    @property
    def user(self) -> str | None:
        """The user; None for anybody."""
        return None if self.caller.signer is None else self.caller.name

    def may_ask(self, now_ms: int) -> bool:
        """Whether it has neither ended nor been without a request for too long."""
        is_fresh = self.user is None or self.used_ms >= now_ms - _IDLE_MS
        return self.is_open and is_fresh

    def use(self, now_ms: int) -> None:
        """Records that it made a request."""
        self.used_ms = max(self.used_ms, now_ms)

    def end(self) -> None:
        """Ends it: its pages that are still open cannot ask any more."""
        self.is_open = False


class Sessions:
    """The sessions of a console.

    Attributes:
        anybody: the session of all who have not logged in, where nobody needs to.
    """

    def __init__(self, *, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self._by_token: OrderedDict[bytes, ConsoleSession] = OrderedDict()
        self._attempts: OrderedDict[str, deque[int]] = OrderedDict()
        self.anybody = ConsoleSession(ApiCaller("anybody"), now_ms())

    def begin(self, signer: Signer) -> str:
        """Begins a session of a user, and returns its token."""
        now_ms = self._now_ms()
        for key, session in list(self._by_token.items()):
            if not session.may_ask(now_ms):
                self._end(key)
        while len(self._by_token) >= _SESSIONS_MAX:
            self._end(next(iter(self._by_token)))
        token = secrets.token_urlsafe(32)
        session = ConsoleSession(ApiCaller(signer.access_key, signer), now_ms)
        self._by_token[_digest(token)] = session
        return token

    def of_token(self, token: str | None) -> ConsoleSession | None:
        """The session of a token; None if there is none, or it has ended."""
        if token is None:
            return None
        key = _digest(token)
        session = self._by_token.get(key)
        now_ms = self._now_ms()
        if session is None or not session.may_ask(now_ms):
            self._end(key)
            return None
        session.use(now_ms)
        self._by_token.move_to_end(key)
        return session

    def end(self, token: str | None) -> None:
        """Ends the session of a token."""
        if token is not None:
            self._end(_digest(token))

    def _end(self, key: bytes) -> None:
        session = self._by_token.pop(key, None)
        if session is not None:
            session.end()

    def check_attempts(self, *names: str) -> None:
        """Checks that a user and an address have not tried too often.

        Raises:
            TooManyAttempts: one of them has.
        """
        begin_ms = self._now_ms() - _ATTEMPTS_MS
        for name in names:
            recent = self._attempts.get(name, deque())
            if sum(at > begin_ms for at in recent) >= _ATTEMPTS_MAX:
                raise TooManyAttempts("too many failed attempts to log in: wait a minute")

    def count_failure(self, *names: str) -> None:
        """Counts a failed attempt to log in."""
        for name in names:
            recent = self._attempts.setdefault(name, deque(maxlen=_ATTEMPTS_MAX))
            recent.append(self._now_ms())
            self._attempts.move_to_end(name)
        while len(self._attempts) > _NAMES_MAX:
            self._attempts.popitem(last=False)


def _digest(token: str) -> bytes:
    """What sessions are found by: how long finding one takes says nothing about a token."""
    return hashlib.sha256(token.encode("utf-8", "replace")).digest()
