"""Measures how long requests take, for metrics.

It stands between the server and what answers, and only where somebody reads metrics: the clock
is read twice and a table once for each read, however many requests came in it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from sprocket.base.errors import RemoteProtocolError
from sprocket.base.histogram import Histogram
from sprocket.broker.tables.measures import BrokerMeasures, CallKind, TopicCreation
from sprocket.message.topic import is_system_topic
from sprocket.protocol.codes import OwnRequestCode, RequestCode, ResponseCode
from sprocket.protocol.command import Command, Reply
from sprocket.remoting.endpoints import BatchEndpoint, EventualResponse, Response, Shortcut
from sprocket.remoting.transport import Peer

#: RocketMQ's words for how a request ended. Source: RemotingMetricsConstant.
SUCCESS, ONEWAY, CANCELED = "success", "oneway", "cancelled"
FAILED = "process_request_failed"

#: Stands for all request codes that there are not.
OTHER = -1
_KNOWN = frozenset({*RequestCode, *OwnRequestCode})
#: Requests whose replies wait for messages.
_HELD = frozenset(
    {
        RequestCode.PULL_MESSAGE, RequestCode.LITE_PULL_MESSAGE, RequestCode.POP_MESSAGE,
        RequestCode.NOTIFICATION, RequestCode.POP_LITE_MESSAGE,
    }
)  # fmt: skip
_TOPICS = frozenset(
    {
        RequestCode.UPDATE_AND_CREATE_TOPIC, RequestCode.UPDATE_AND_CREATE_TOPIC_LIST,
        RequestCode.UPDATE_AND_CREATE_STATIC_TOPIC,
    }
)  # fmt: skip
_GROUPS = frozenset(
    {
        RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP,
        RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST,
    }
)
_CREATE = _TOPICS | _GROUPS
#: The types of the outcomes of a read whose replies are written already.
_WRITTEN = {bytes}
#: The first bound of the histogram, s.
_SHORT = 0.001
_SENDS = CallKind(RequestCode.SEND_MESSAGE_V2, ResponseCode.SUCCESS, False, SUCCESS)


class CallMeter:
    """Measures requests by the loop's clock."""

    def __init__(self, measures: BrokerMeasures) -> None:
        self._measures = measures

    def measured(self, endpoint: BatchEndpoint) -> BatchEndpoint:
        """The endpoint, with its requests measured."""

        # As most requests are sends that are answered at once within a millisecond, these take the
        # short way: 1.3 µs became 0.4.
        plain: dict[int, Histogram] = {}
        clock: Callable[[], float] | None = None

        def answer(commands: Sequence[Command], peer: Peer) -> Sequence[EventualResponse]:
            nonlocal clock
            if clock is None:
                clock = asyncio.get_running_loop().time
            began = clock()
            outcomes = endpoint(commands, peer)
            count = len(outcomes)
            if type(outcomes[0]) is bytes and (count == 1 or set(map(type, outcomes)) == _WRITTEN):
                seconds = clock() - began
                counted = plain.get(commands[0].code)
                if counted is not None and seconds <= _SHORT:
                    counted.counts[0] += count
                    counted.total += seconds * 1_000 * count
                    return outcomes
                kind = CallKind(commands[0].code, ResponseCode.SUCCESS, False, SUCCESS)
                self._measures.called(kind, seconds * 1_000, count)
                if (made := self._measures.calls.get(kind)) is not None:
                    plain[kind.code] = made
                return outcomes
            return self._each(commands, outcomes, began, clock())

        return answer

    def measured_shortcut(self, shortcut: Shortcut, sends: Callable[[], int]) -> Shortcut:
        """The shortcut, with the sends that it takes measured.

        Args:
            sends: how many there were since the start.
        """

        def take(data: bytes, peer: Peer) -> tuple[int, bytes] | None:
            clock = asyncio.get_running_loop().time
            began, before = clock(), sends()
            taken = shortcut(data, peer)
            if taken is not None:
                self._measures.called(_SENDS, (clock() - began) * 1_000, sends() - before)
            return taken

        return take

    def _each(
        self,
        commands: Sequence[Command],
        outcomes: Sequence[EventualResponse],
        began: float,
        now: float,
    ) -> Sequence[EventualResponse]:
        """Counts outcomes of several kinds; those that come later are counted then."""
        # A request without an outcome of its own shares that of one before it, or wants none.
        shared = sum(
            outcome is None and not command.is_oneway
            for command, outcome in zip(commands, outcomes, strict=False)
        )
        done: list[EventualResponse] = []
        for command, outcome in zip(commands, outcomes, strict=False):
            if outcome is None:
                if command.is_oneway:
                    self._count(command, ResponseCode.SUCCESS, now - began, result=ONEWAY)
                done.append(None)
            elif isinstance(outcome, bytes | Reply):
                self._count(command, _code_of(outcome), now - began)
                done.append(outcome)
            else:
                done.append(self._followed(command, outcome, began, 1 + shared))
                shared = 0
        return done

    async def _followed(
        self, command: Command, outcome: Awaitable[Response], began: float, count: int
    ) -> Response:
        clock = asyncio.get_running_loop().time
        try:
            answered = await outcome
        except asyncio.CancelledError:
            self._count(command, ResponseCode.SUCCESS, clock() - began, count, result=CANCELED)
            raise
        except Exception:  # the server turns it into a reply; here it is only counted
            self._count(command, ResponseCode.SYSTEM_ERROR, clock() - began, count)
            raise
        self._count(command, _code_of(answered), clock() - began, count)
        return answered

    def _count(
        self, command: Command, response: int, seconds: float, count: int = 1, *, result: str = ""
    ) -> None:
        code, ms = command.code, seconds * 1_000
        if code not in _KNOWN:  # peers may make up any number of codes
            code = OTHER
        if command.is_oneway:
            result = ONEWAY
        result = result or (FAILED if response == ResponseCode.SYSTEM_ERROR else SUCCESS)
        self._measures.called(CallKind(code, response, code in _HELD, result), ms, count)
        if code not in _CREATE:
            return
        is_done = response == ResponseCode.SUCCESS
        if code in _TOPICS:
            try:
                topic = command.fields.get("topic") or ""
            except RemoteProtocolError:  # the reply says so
                topic = ""
            is_system = is_system_topic(topic)
            self._measures.topic_made(TopicCreation(is_done, is_system), ms)
        else:
            self._measures.group_made(is_done, ms)


def _code_of(answered: Response) -> int:
    """The response code; replies that are written already, or that there are none of, are good."""
    return answered.code if isinstance(answered, Reply) else ResponseCode.SUCCESS
