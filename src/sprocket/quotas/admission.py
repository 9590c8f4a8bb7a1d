"""Admits requests as far as the quotas of their senders allow it.

A send above a limit is refused with code 2, upon which clients of RocketMQ 5 try again, others
report it to their users; nothing of it is stored. A read above a limit waits, for as long as its
sender would wait for messages: a reply that comes late slows a consumer down without an error. If
that does not suffice it is refused with code 2 too, upon which consumers pause for three seconds.
Requests that keep a client in its place have a second burst; see `requests`.
Source of what clients do: DefaultMQProducer.retryResponseCodes, pullTimeDelayMillsWhenException of
DefaultMQPushConsumerImpl in RocketMQ 4.9 and 5.3; ResponseBuilder of its proxy.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from sprocket.base.errors import UsageError
from sprocket.protocol.command import Command, Reply
from sprocket.quotas.counted import CountedReply
from sprocket.quotas.creation import creation_check
from sprocket.quotas.lines import PAUSE_MIN, MeterLine
from sprocket.quotas.meters import Meter, MeterTable
from sprocket.quotas.origins import Origin, Origins
from sprocket.quotas.refusals import Refusals
from sprocket.quotas.requests import (
    FREE,
    NOTHING,
    READS,
    SENDS,
    VITAL,
    less_patient,
    patience_ms,
    subject,
)
from sprocket.quotas.rules import QuotaKind, QuotaRules
from sprocket.remoting.endpoints import EventualResponse, Response
from sprocket.remoting.transport import Peer

#: Answers the requests that are admitted, the first of them at least.
AnswerFirst = Callable[[Sequence[Command], Peer], Sequence[EventualResponse]]


class Admitted(NamedTuple):
    """Requests that may pass.

    Attributes:
        size: how many of the first.
        meters: what counts them.
        is_charged: whether they are counted already, so that those that are left over are not
            counted once more.
        is_read: whether it is one that takes messages out.
        is_delayed: whether it may pass only later.
    """

    origin: Origin
    size: int
    meters: Sequence[Meter] = ()
    is_charged: bool = False
    is_read: bool = False
    is_delayed: bool = False


class Admission:
    """The quotas of one server at work.

    Args:
        texts: the rules as they are set now; another object if they have changed.
        clock: the time of the loop, s.
        client_of: the client id of a connection; empty if it is not known.
        user_of: the user who signed a request, if that was checked; else empty.
        waiting_max: the most reads that may wait for their limits.
    """

    def __init__(
        self,
        texts: Callable[[], Sequence[str]],
        *,
        clock: Callable[[], float],
        client_of: Callable[[Peer], str] = lambda peer: "",
        user_of: Callable[[Command], str] = lambda command: "",
        waiting_max: Callable[[], int] = lambda: 100_000,
    ) -> None:
        self._texts = texts
        self._clock = clock
        self._waiting_max = waiting_max
        self._known: Sequence[str] = ()
        self._rules = QuotaRules()
        self._asks_subject = self._counts_out = self._counts_made = False
        self._meters = MeterTable(self._rules)
        self._refusals = Refusals(clock)
        self._origins = Origins(self._meters, self._refusals, client_of=client_of, user_of=user_of)
        self._lines: dict[Meter, MeterLine] = {}
        self._waiting = 0

    @property
    def is_on(self) -> bool:
        """Whether there are any rules; applies those that have changed."""
        texts = self._texts()
        if texts is not self._known:
            self._change(texts)
        return bool(texts)

    @property
    def refused(self) -> Mapping[tuple[str, str], int]:
        """How many requests were refused, by kind and limit."""
        return self._refusals.refused

    @property
    def delayed(self) -> Mapping[tuple[str, str], int]:
        """How many reads had to wait, by kind and limit."""
        return self._refusals.delayed

    def figures(self) -> dict[str, str]:
        """What was refused and delayed, as a server reports it about itself."""
        return self._refusals.table()

    def connections_max(self, ip: str) -> int | None:
        """How many connections an address may have; None for any number."""
        quota = self._rules.quota(QuotaKind.IP, ip) if self.is_on else None
        return None if quota is None else quota.connections

    def connection_refused(self, ip: str) -> None:
        """Counts a connection that was closed because its address has too many."""
        self._refusals.refused[QuotaKind.IP, "connections"] += 1

    def answer_first(
        self, commands: Sequence[Command], peer: Peer, answer: AnswerFirst
    ) -> Sequence[EventualResponse]:
        """The replies to the first of some requests that arrived together, one or more.

        Raises:
            SystemBusy: the first one is refused.
        """
        if not self.is_on:
            return answer(commands, peer)
        admitted = self._admit(commands, peer)
        commands = commands[: admitted.size]
        if admitted.is_delayed:
            return [self._delayed(admitted, commands, peer, answer)]
        outcomes = self._answered(admitted, commands, peer, answer)
        if admitted.is_charged:
            admitted.origin.ahead += len(commands) - len(outcomes)
        return outcomes

    def _change(self, texts: Sequence[str]) -> None:
        self._known = texts
        try:
            self._rules = rules = QuotaRules.parse(texts)
        except UsageError:  # the form of the setting has refused it before
            return
        self._asks_subject = not rules.kinds.isdisjoint((QuotaKind.TOPIC, QuotaKind.GROUP))
        self._counts_out = rules.has("bytes_out")
        self._counts_made = rules.has("new_topics", "new_groups")
        self._meters.change(rules, self._clock())

    def _admit(self, commands: Sequence[Command], peer: Peer) -> Admitted:
        first = commands[0]
        origin = self._origins.of(peer)
        if origin.ahead:
            count = min(origin.ahead, len(commands))
            origin.ahead -= count
            return Admitted(origin, count, is_charged=True)
        self._refusals.look()
        now, code = self._clock(), first.code
        if code in FREE:
            return Admitted(origin, 1)
        about = subject(first) if self._asks_subject else NOTHING
        meters = self._origins.meters_of(origin, first, peer, about, now)
        count = len(commands)
        if count > 1:
            count = self._alike(origin, commands) if code in SENDS else 1
        if not meters:
            return Admitted(origin, count)
        if code in READS:
            return self._admit_read(origin, meters, now)
        if count > 1:
            size = sum([len(each.body) for each in commands[:count]])
            if self._lacking(meters, count, size, origin.client, now, is_bulk=True) is None:
                self._take(meters, count, size, origin.client, now)
                return Admitted(origin, count, meters, is_charged=True)
        size, is_vital = len(first.body), code in VITAL
        lacking = self._lacking(meters, 1, size, origin.client, now, is_vital=is_vital)
        if lacking is not None:
            raise self._refusals.refusal(*lacking)
        self._take(meters, 1, size, origin.client, now)
        return Admitted(origin, 1, meters)

    def _alike(self, origin: Origin, commands: Sequence[Command]) -> int:
        """How many of the first requests count on the same meters."""
        count = self._origins.are_alike(origin, commands)
        if not self._asks_subject:
            return count
        about = subject(commands[0])
        for number in range(1, count):
            if subject(commands[number]) != about:
                return number
        return count

    @staticmethod
    def _lacking(
        meters: Sequence[Meter],
        count: int,
        size: int,
        taker: Hashable,
        now: float,
        *,
        is_vital: bool = False,
        is_bulk: bool = False,
    ) -> tuple[Meter, str] | None:
        """Which limit does not allow so many requests with so many bytes; None if all do.

        Args:
            is_bulk: whether they are several, of which each may pass alone.
        """
        for meter in meters:
            if (bucket := meter.requests) is not None and (
                (is_bulk and count > bucket.burst)
                or not bucket.has(count, now, taker, bucket.burst if is_vital else 0.0)
            ):
                return meter, "requests"
            if (bucket := meter.bytes_in) is not None and (
                (is_bulk and size > bucket.burst)
                or not bucket.has(size, now, taker, bucket.burst if is_vital else 0.0)
            ):
                return meter, "bytes_in"
        return None

    @staticmethod
    def _take(meters: Sequence[Meter], count: int, size: int, taker: Hashable, now: float) -> None:
        for meter in meters:
            if (bucket := meter.requests) is not None:
                bucket.spend(count, now, taker)
            if (bucket := meter.bytes_in) is not None:
                bucket.spend(size, now, taker)

    # Reads.

    def _admit_read(self, origin: Origin, meters: Sequence[Meter], now: float) -> Admitted:
        for meter in meters:
            if meter.quota.held is not None and meter.held >= meter.quota.held:
                raise self._refusals.refusal(meter, "held")
        if (blocking := self._blocking(meters, now)) is None:
            self._spend(meters, "requests", 1, origin.client, now)
            return Admitted(origin, 1, meters, is_read=True)
        if self._waiting >= self._waiting_max():
            raise self._refusals.refusal(*blocking)
        self._refusals.delay(*blocking)
        return Admitted(origin, 1, meters, is_read=True, is_delayed=True)

    def _blocking(
        self, meters: Sequence[Meter], now: float, called_by: Meter | None = None
    ) -> tuple[Meter, str] | None:
        """What a read must wait for; None if it may pass."""
        for meter in meters:
            for bucket, limit in ((meter.requests, "requests"), (meter.bytes_out, "bytes_out")):
                if bucket is not None and bucket.wait_seconds(1, now) >= PAUSE_MIN:
                    return meter, limit
            if meter is not called_by and meter in self._lines:
                return meter, "bytes_out" if meter.requests is None else "requests"
        return None

    def _delayed(
        self,
        admitted: Admitted,
        commands: Sequence[Command],
        peer: Peer,
        answer: AnswerFirst,
    ) -> Awaitable[Response]:
        self._waiting += 1
        return self._counted(
            admitted, self._wait_and_answer(admitted, commands, peer, answer), self._stop_waiting
        )

    def _stop_waiting(self) -> None:
        self._waiting -= 1

    async def _wait_and_answer(
        self,
        admitted: Admitted,
        commands: Sequence[Command],
        peer: Peer,
        answer: AnswerFirst,
    ) -> Response:
        command, meters, taker = commands[0], admitted.meters, admitted.origin.client
        began = self._clock()
        until = began + patience_ms(command) / 1000
        called_by = None
        while (blocking := self._blocking(meters, self._clock(), called_by)) is not None:
            called_by = blocking[0]
            line = self._lines.get(called_by)
            if line is None:
                line = self._lines[called_by] = MeterLine(partial(self._wait, called_by))
            try:
                if not await line.turn(taker, until):
                    raise self._refusals.refusal(*blocking)
            finally:
                if line.is_empty and self._lines.get(called_by) is line:
                    del self._lines[called_by]
        now = self._clock()
        self._spend(meters, "requests", 1, taker, now)
        less_patient(command, round((now - began) * 1000))
        outcome = answer(commands, peer)[0]
        return await outcome if isinstance(outcome, Awaitable) else outcome

    def _wait(self, meter: Meter) -> float:
        now = self._clock()
        buckets = (meter.requests, meter.bytes_out)
        return max((each.wait_seconds(1, now) for each in buckets if each is not None), default=0.0)

    # What is counted while a request is answered, and afterwards.

    def _answered(
        self, admitted: Admitted, commands: Sequence[Command], peer: Peer, answer: AnswerFirst
    ) -> Sequence[EventualResponse]:
        if not admitted.meters or not (admitted.is_read or self._counts_out or self._counts_made):
            return answer(commands, peer)
        token = creation_check.set(partial(self._make, admitted)) if self._counts_made else None
        try:
            outcomes = answer(commands, peer)
        finally:
            if token is not None:
                creation_check.reset(token)
        counted: list[EventualResponse] = []
        for outcome in outcomes:
            if isinstance(outcome, Reply | bytes) or outcome is None:
                self._sent(admitted, outcome)
                counted.append(outcome)
            else:
                counted.append(self._counted(admitted, outcome))
        return counted

    def _counted(
        self,
        admitted: Admitted,
        outcome: Awaitable[Response],
        release: Callable[[], None] = lambda: None,
    ) -> Awaitable[Response]:
        """The same reply, counted until it is there."""
        meters = admitted.meters if admitted.is_read else ()
        for meter in meters:
            meter.held += 1

        def released() -> None:
            for meter in meters:
                meter.held -= 1
            release()

        return CountedReply(
            outcome,
            release=released,
            spend=partial(self._sent, admitted),
            check=partial(self._make, admitted) if self._counts_made else None,
        )

    def _sent(self, admitted: Admitted, response: Response) -> None:
        if self._counts_out and response is not None:
            body = response.body if isinstance(response, Reply) else response
            is_whole = isinstance(body, bytes | bytearray | memoryview)
            size = len(body) if is_whole else sum(map(len, body))  # type: ignore[arg-type]
            self._spend(admitted.meters, "bytes_out", size, admitted.origin.client, self._clock())

    def _make(self, admitted: Admitted, limit: str) -> None:
        """Counts one more topic or group that a request makes.

        Raises:
            SystemBusy: its sender has made as many as it may.
        """
        now, taker = self._clock(), admitted.origin.client
        for meter in admitted.meters:
            bucket = meter.buckets.get(limit)
            if bucket and not bucket.has(1, now, taker):
                raise self._refusals.refusal(meter, limit)
        self._spend(admitted.meters, limit, 1, taker, now)

    def _spend(
        self, meters: Sequence[Meter], limit: str, cost: float, taker: Hashable, now: float
    ) -> None:
        for meter in meters:
            if bucket := meter.buckets.get(limit):
                bucket.spend(cost, now, taker)
