"""A reply that comes later, and what is counted until it is there."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from typing import Any

from sprocket.base.cancelling import close_unbegun
from sprocket.quotas.creation import CreationCheck, creation_check
from sprocket.remoting.endpoints import Response


class CountedReply:
    """Awaitable of a reply.

    It releases what it holds when the reply is there, or when nobody waits for it any more, even if
    nobody ever began to.

    Args:
        outcome: what is waited for.
        release: called once.
        spend: called with the reply.
        check: counts topics and groups that are made meanwhile.
    """

    __slots__ = ("_check", "_outcome", "_release", "_spend")

    def __init__(
        self,
        outcome: Awaitable[Response],
        *,
        release: Callable[[], None] | None,
        spend: Callable[[Response], None],
        check: CreationCheck | None,
    ) -> None:
        self._outcome = outcome
        self._release = release
        self._spend = spend
        self._check = check

    def __await__(self) -> Generator[Any, Any, Response]:
        token = creation_check.set(self._check)
        try:
            response = yield from self._outcome.__await__()
        finally:
            creation_check.reset(token)
            self._end()
        self._spend(response)
        return response

    def __del__(self) -> None:
        self._end()
        close_unbegun(self._outcome)

    def _end(self) -> None:
        release, self._release = self._release, None
        if release is not None:
            release()
