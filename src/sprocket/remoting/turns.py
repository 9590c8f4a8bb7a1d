"""Shares the event loop between the peers of one server.

In one iteration of the loop, requests are answered as they are read, for a few milliseconds; what
more is read then joins a line, whose peers get their turns in the next iterations. So however many
requests some peers send at once, the loop comes round to the others.

An event loop may hand over many reads of one socket in one iteration: libuv 32 of them. That is why
the time is counted for the iteration and not for each read.

A request cannot be interrupted, and some take as long as a hundred turns. A peer that has sent such
a one waits behind the others for a time, in proportion to what it took: so many peers with long
requests do not hold up one with short ones, which waits for one long request at most.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Protocol

#: The time for what is read in one iteration, and again for the line, s.
ITERATION_SECONDS = 0.005
#: The longest turn of one peer, s.
TURN_SECONDS = 0.002
#: Less time than this is not counted, which spares most iterations a callback, s.
_COUNTED_SECONDS = 0.0002
#: A turn that takes longer is long, s: five times what it may.
_LONG_SECONDS = 0.010
#: How many times as long as that a peer waits behind the others; at most so long, s.
_BEHIND_TIMES, _BEHIND_SECONDS_MAX = 10, 5.0


class Waiting(Protocol):
    """A peer with requests that are not answered yet.

    Attributes:
        behind_until: the time of the loop until which it waits behind the others; 0 at first.
    """

    behind_until: float

    def take_turn(self, until: float) -> bool:
        """Answers requests until a loop time, at least one. Returns whether it has more to do."""
        ...


class Turns:
    """The turns of the peers of one server, or of one pool."""

    __slots__ = (
        "_begin_until", "_begun_late", "_behind", "_is_due", "_line", "_loop", "_spent", "is_over",
    )  # fmt: skip

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        #: Peers with requests that wait, the next one first.
        self._line: deque[Waiting] = deque()
        #: Those of them that wait behind the others.
        self._behind: deque[Waiting] = deque()
        self._is_due = False
        self._spent = 0.0
        #: Whether this iteration has no time left for what is read.
        self.is_over = False
        #: Until when tasks may begin in this iteration; None before the first.
        self._begin_until: float | None = None
        #: Peers of which a task began after that, in this iteration.
        self._begun_late: set[object] = set()

    def spend(self, seconds: float) -> None:
        """Counts time that requests took as they were read."""
        if seconds > _COUNTED_SECONDS:
            self._spent += seconds
            self.is_over = self._spent >= ITERATION_SECONDS
            self._come_round()

    # The first step of a task runs in the iteration after the one that read its request, and may
    # take long: with hundreds of tasks, much longer than all turns.
    def may_begin(self, peer: object) -> bool:
        """Whether a task of a peer may begin its work in this iteration; otherwise it waits for
        another. One of each peer may in any case, or it would wait behind all tasks of the others.
        """
        now = self._loop.time()
        if self._begin_until is None:
            self._begin_until = now + ITERATION_SECONDS
            self._loop.call_soon(self._begin_again)
        if now < self._begin_until:
            return True
        if peer in self._begun_late:
            return False
        self._begun_late.add(peer)
        return True

    def _begin_again(self) -> None:
        self._begin_until = None
        self._begun_late.clear()

    def charge(self, peer: Waiting, seconds: float) -> None:
        """Counts the time that a peer's requests took at once; after a long time it waits behind
        the others."""
        if seconds > _LONG_SECONDS:
            wait = min(seconds * _BEHIND_TIMES, _BEHIND_SECONDS_MAX)
            peer.behind_until = self._loop.time() + wait

    def is_behind(self, peer: Waiting) -> bool:
        """Whether what a peer sends waits behind the others."""
        return bool(peer.behind_until) and self._loop.time() < peer.behind_until

    def join(self, peer: Waiting) -> None:
        """Puts a peer at the end of the line. It must not be in the line yet."""
        (self._behind if self.is_behind(peer) else self._line).append(peer)
        self._come_round()

    def _come_round(self) -> None:
        if not self._is_due:
            self._is_due = True
            self._loop.call_soon(self._next)

    def _next(self) -> None:
        """The next iteration begins: the line first, then what is read."""
        self._is_due = False
        line, clock = self._line, self._loop.time
        ends = (now := clock()) + ITERATION_SECONDS
        # A long line makes the turns shorter; each is one request, or one run of requests, at
        # least. A peer that has more to do goes to the end of the line.
        share = min(TURN_SECONDS, ITERATION_SECONDS / (len(line) or 1))
        while line and now < ends:
            now = self._turn(line.popleft(), now, now + share)
        # One of those behind in any case: they wait for long, but not for ever.
        if behind := self._behind:
            now = self._turn(behind.popleft(), now, now + TURN_SECONDS)
            while behind and now < ends:
                now = self._turn(behind.popleft(), now, now + TURN_SECONDS)
        self._spent, self.is_over = 0.0, False
        if line or behind:
            self._come_round()

    def _turn(self, peer: Waiting, began: float, until: float) -> float:
        """Gives a peer its turn; the time when it is over."""
        has_more = peer.take_turn(until)
        now = self._loop.time()
        self.charge(peer, now - began)
        if has_more:
            (self._behind if self.is_behind(peer) else self._line).append(peer)
        return now
