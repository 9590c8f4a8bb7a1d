"""Shares the event loop between the peers of its servers.

In one iteration of the loop, requests are answered as they are read, for a few milliseconds; what
more is read then joins a line, whose peers get their turns in the next iterations. So however many
requests some peers send at once, the loop comes round to the others.

An event loop may hand over many reads of one socket in one iteration: libuv 32 of them. That is why
the time is counted for the iteration and not for each read.

A request cannot be interrupted, and some take as long as a hundred turns. A peer that has sent such
a one waits behind the others for a time, in proportion to what it took: so many peers with long
requests do not hold up one with short ones, which waits for one long request at most.

A few milliseconds are still ten times what a request of a peer with little to do takes. While such
modest peers are there, all others together have about one run of `RUN` requests in one iteration,
and the modest ones pass them: a request of theirs waits for the rest of that run. It is counted in
requests, since uvloop's clock shows whole milliseconds. Where nobody is modest, nobody gains by it,
and turns stay long.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextvars import ContextVar
from typing import Protocol
from weakref import WeakValueDictionary

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
#: The most requests that are answered in one go: half a millisecond of sends.
RUN = 64
#: Beside modest peers, an iteration is full after so many requests of others. It has fewer than
#: this and one run of them.
_FULL = 32
#: The time of one turn, and of all tasks that begin in one iteration, beside modest peers, s.
_SHORT_SECONDS = 0.001
#: How long turns stay short after a modest peer was served, s.
_SHORT_FOR_SECONDS = 1.0
#: Who takes how much is looked at after so many requests: 10 ms of sends.
_PERIOD_REQUESTS = 1_024
#: So many requests in a period are modest however many peers there are.
_MODEST_MIN = 8


class Account:
    """What one peer has taken of the loop lately.

    Attributes:
        behind_until: the time of the loop until which it waits behind the others; 0 at first.
        taken, before: its requests in its period and in the one before.
    """

    __slots__ = ("before", "behind_until", "period", "taken")

    def __init__(self) -> None:
        self.behind_until = 0.0
        self.taken = self.before = 0
        self.period = -1


class Waiting(Protocol):
    """A peer with requests that are not answered yet."""

    account: Account

    def take_turn(self, until: float) -> bool:
        """Answers requests until a loop time, at least one. Returns whether it has more to do."""
        ...

    def abort(self) -> None:
        """Closes its connection at once."""
        ...


class Turns:
    """The turns of all peers of one loop; `turns_of` gives it to servers.

    Args:
        process: whose they are; see `PROCESS`.

    Attributes:
        is_over: whether this iteration has no time left for what is read.
        is_full: whether it has none left for peers that are not modest.
    """

    __slots__ = (
        "__weakref__", "_active", "_begin_until", "_begun_late", "_behind", "_in_period",
        "_is_due", "_line", "_loop", "_modest_line", "_modest_max", "_period", "_process",
        "_short_until", "_spent", "_taken", "is_full", "is_over",
    )  # fmt: skip

    def __init__(self, loop: asyncio.AbstractEventLoop, process: object = None) -> None:
        self._loop = loop
        self._process = process
        #: Peers with requests that wait, the next one first.
        self._line: deque[Waiting] = deque()
        #: Those of them that wait behind the others, and those that pass them.
        self._behind: deque[Waiting] = deque()
        self._modest_line: deque[Waiting] = deque()
        self._is_due = False
        self._spent = 0.0
        self.is_over = False
        #: Requests of peers that are not modest in this iteration, while turns are short.
        self._taken = 0
        self.is_full = False
        self._short_until = -1.0
        #: The period, its requests and peers so far, and how many requests in one are modest.
        self._period = self._in_period = self._active = 0
        self._modest_max = _PERIOD_REQUESTS // 2
        #: Until when tasks may begin in this iteration; None before the first.
        self._begin_until: float | None = None
        #: Peers of which a task began after that, in this iteration.
        self._begun_late: set[object] = set()

    # Who is modest: whoever took less than half of an equal share, in this period and in the last.
    # A new connection is not known to be, or a peer that floods would only have to make more.

    def count(self, peer: Waiting, requests: int, now: float) -> None:
        """Counts requests of a peer that were answered now."""
        account = peer.account
        if account.period != self._period:
            self._enter(account)
        account.taken += requests
        most = self._modest_max
        if account.taken <= most and account.before <= most:
            self._short_until = now + _SHORT_FOR_SECONDS
        elif now < self._short_until:
            self.fill(requests)
        self._in_period += requests
        if self._in_period >= _PERIOD_REQUESTS:
            self._modest_max = max(_MODEST_MIN, _PERIOD_REQUESTS // (2 * self._active))
            self._period += 1
            self._in_period = self._active = 0

    def fill(self, requests: int) -> None:
        """Counts requests of peers that are not modest in this iteration."""
        self._taken += requests
        self.is_full = self._taken >= _FULL
        self._come_round()

    def _enter(self, account: Account) -> None:
        if account.period < 0:
            account.before = _PERIOD_REQUESTS
        else:
            account.before = account.taken if account.period == self._period - 1 else 0
        account.taken, account.period = 0, self._period
        self._active += 1

    def is_modest(self, peer: Waiting) -> bool:
        """Whether a peer took little lately."""
        account, most, age = peer.account, self._modest_max, self._period - peer.account.period
        if account.period < 0:
            return False
        return (age > 1 or account.taken <= most) and (age > 0 or account.before <= most)

    def is_short(self, now: float) -> bool:
        """Whether a modest peer was served lately, so that others have short turns."""
        return now < self._short_until

    def turn_until(self, now: float) -> float:
        """Until when a turn may take that begins now."""
        return now + (_SHORT_SECONDS if now < self._short_until else TURN_SECONDS)

    # Time, whoever takes it.

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
            self._begin_until = now + (
                _SHORT_SECONDS if now < self._short_until else ITERATION_SECONDS
            )
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
            peer.account.behind_until = self._loop.time() + wait

    def is_behind(self, peer: Waiting) -> bool:
        """Whether what a peer sends waits behind the others."""
        behind_until = peer.account.behind_until
        return bool(behind_until) and self._loop.time() < behind_until

    # The line.

    def join(self, peer: Waiting) -> None:
        """Puts a peer at the end of the line. It must not be in the line yet."""
        self._line_of(peer).append(peer)
        self._come_round()

    def _line_of(self, peer: Waiting) -> deque[Waiting]:
        if self.is_behind(peer):
            return self._behind
        return self._modest_line if self.is_modest(peer) else self._line

    def _come_round(self) -> None:
        if not self._is_due:
            self._is_due = True
            self._loop.call_soon(self._next)

    def _next(self) -> None:
        """The next iteration begins: the line first, then what is read."""
        self._is_due = False
        self._taken, self.is_full = 0, False
        modest, line, behind = self._modest_line, self._line, self._behind
        clock = self._loop.time
        ends = (now := clock()) + ITERATION_SECONDS
        try:
            # A long line makes the turns shorter; each is one request, or one run of requests, at
            # least. A peer that has more to do goes to the end of the line.
            share = min(TURN_SECONDS, ITERATION_SECONDS / (len(line) + len(modest) or 1))
            while modest and now < ends:
                now = self._turn(modest.popleft(), now, now + share)
            if self.is_short(now):
                share, ends = min(share, _SHORT_SECONDS), min(ends, now + _SHORT_SECONDS)
            while line and now < ends and not self.is_full:
                now = self._turn(line.popleft(), now, now + share)
            # One of those behind in any case: they wait for long, but not for ever.
            if behind:
                now = self._turn(behind.popleft(), now, now + TURN_SECONDS)
                while behind and now < ends and not self.is_full:
                    now = self._turn(behind.popleft(), now, now + TURN_SECONDS)
        finally:
            self._spent, self.is_over = 0.0, False
            if line or behind or modest or self._taken:
                self._come_round()

    def _turn(self, peer: Waiting, began: float, until: float) -> float:
        """Gives a peer its turn; the time when it is over."""
        try:
            has_more = peer.take_turn(until)
        except (
            BaseException
        ):  # as asyncio does where a read fails: what it sent would wait for ever
            peer.abort()
            raise
        now = self._loop.time()
        self.charge(peer, now - began)
        if has_more:
            self._line_of(peer).append(peer)
        return now


#: The process of the running code, where one loop plays several: each has turns of its own, since
#: one that is stopped must not stop the others. Set by simulations only.
PROCESS: ContextVar[object] = ContextVar("process_of_turns", default=None)
#: By the ids of loop and process, as long as one of its servers has them. They keep both, so that
#: nothing else gets such an id; a key that kept a loop would keep it for ever, and what it knows.
_TURNS: WeakValueDictionary[tuple[int, int], Turns] = WeakValueDictionary()


def turns_of(loop: asyncio.AbstractEventLoop) -> Turns:
    """The turns of a loop. All servers of a process in it share them, as they share its time."""
    process = PROCESS.get()
    key = id(loop), id(process)
    turns = _TURNS.get(key)
    if turns is None:
        turns = _TURNS[key] = Turns(loop, process)
    return turns
