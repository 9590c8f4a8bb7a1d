"""AckMessage, ChangeInvisibleDuration, ForwardMessageToDeadLetterQueue.

A client names a message by the handle that it got. If the proxy keeps the message invisible, the
broker knows another one by now.
Source: AckMessageActivity, ChangeInvisibleDurationActivity, ForwardMessageToDLQActivity of RocketMQ
5.3 (module proxy).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterator, Sequence

from sprocket.base.errors import SprocketError
from sprocket.protocol.command import Command
from sprocket.proxy.brokers.popped_replies import ReceiptHandle
from sprocket.proxy.brokers.receipts import Receipts, checked
from sprocket.proxy.clients.renewals import Renewals
from sprocket.proxy.clients.served_clients import CLIENT_ID
from sprocket.proxy.config import ProxyConfig
from sprocket.proxy.http2.calls import GrpcCall
from sprocket.proxy.messages import checks
from sprocket.proxy.messages import rocketmq_pb2 as pb
from sprocket.proxy.messages.statuses import (
    CallRefused,
    status,
    status_of_entries,
    status_of_error,
)
from sprocket.proxy.messages.times import ms_of

#: Entries of one request at most.
_ENTRIES_MAX = 512
#: Messages so far behind the first of their check point are acknowledged by themselves.
_BITS_MAX = 1024


class AckMethods:
    """Acknowledges messages, and changes when they come again."""

    def __init__(self, receipts: Receipts, renewals: Renewals, config: ProxyConfig) -> None:
        self._receipts = receipts
        self._renewals = renewals
        self._config = config

    def ack(
        self, call: GrpcCall, request: pb.AckMessageRequest
    ) -> pb.AckMessageResponse | Awaitable[pb.AckMessageResponse]:
        """Acknowledges messages; each has a status of its own.

        Raises:
            CallRefused: topic or group cannot be one, or there are too many entries.
        """
        topic, group = checks.topic_name(request.topic), checks.group_name(request.group)
        if len(request.entries) > _ENTRIES_MAX:
            raise CallRefused(pb.BAD_REQUEST, f"at most {_ENTRIES_MAX} entries go together")
        receipts = self._receipts_of(call.metadata[CLIENT_ID], request)
        if any(each is None for each in receipts):
            return self._taken_and_acked(call.metadata[CLIENT_ID], group, topic, request, receipts)
        return self._acked(group, topic, request, receipts)

    def _receipts_of(
        self, client_id: str, request: pb.AckMessageRequest
    ) -> list[ReceiptHandle | pb.Status | None]:
        """The newest receipt of each entry, or why it is none; None if a change of it is in
        progress."""
        found: list[ReceiptHandle | pb.Status | None] = []
        for entry in request.entries:
            newest = self._renewals.taken(client_id, entry.receipt_handle)
            found.append(None if newest is None else _parsed(newest, entry.lite_topic))
        return found

    async def _taken_and_acked(
        self,
        client_id: str,
        group: str,
        topic: str,
        request: pb.AckMessageRequest,
        receipts: list[ReceiptHandle | pb.Status | None],
    ) -> pb.AckMessageResponse:
        for at, entry in enumerate(request.entries):
            if receipts[at] is None:
                newest = await self._renewals.take(client_id, entry.receipt_handle)
                receipts[at] = _parsed(newest, entry.lite_topic)
        outcome = self._acked(group, topic, request, receipts)
        return outcome if isinstance(outcome, pb.AckMessageResponse) else await outcome

    # Messages that were popped together have one check point, and a client that acknowledges them
    # together costs the broker one record: that took a message, received and acknowledged by 32,
    # from 107 to some 50 µs of CPU (`python -m bench grpc`).
    def _acked(
        self,
        group: str,
        topic: str,
        request: pb.AckMessageRequest,
        receipts: Sequence[ReceiptHandle | pb.Status | None],
    ) -> pb.AckMessageResponse | Awaitable[pb.AckMessageResponse]:
        statuses: list[pb.Status | None] = [None] * len(receipts)
        waiting: list[tuple[list[int], Awaitable[Command]]] = []
        for places in _together(receipts):
            several = list(map(receipts.__getitem__, places))
            first = several[0]
            if not isinstance(first, ReceiptHandle):
                statuses[places[0]] = first
                continue
            try:
                outcome = (
                    self._receipts.acknowledge(group, topic, first)
                    if len(places) == 1
                    else self._receipts.acknowledge_all(group, topic, several)  # type: ignore[arg-type]
                )
            except SprocketError as error:
                _set(statuses, places, status_of_error(error))
                continue
            if isinstance(outcome, Command):
                _set(statuses, places, _status_of(outcome))
            else:
                waiting.append((places, outcome))
        if waiting:
            return _settled(request, statuses, waiting)
        return _response(request, statuses)

    async def change(
        self, call: GrpcCall, request: pb.ChangeInvisibleDurationRequest
    ) -> pb.ChangeInvisibleDurationResponse:
        """Changes for how long a message is invisible, from now on.

        Raises:
            CallRefused: it is too long, or the handle does not count.
            SprocketError: the broker refuses, or cannot be reached.
        """
        topic, group = checks.topic_name(request.topic), checks.group_name(request.group)
        milliseconds = ms_of(request.invisible_duration)
        checks.check_invisible(milliseconds, 0, self._config.invisible_ms_max)
        newest = await self._renewals.take(call.metadata[CLIENT_ID], request.receipt_handle)
        receipt = await self._receipts.hide(
            group,
            topic,
            ReceiptHandle.parse(newest).of_lite(request.lite_topic),
            max(milliseconds, 1),
            suspend=request.suspend,
        )
        return pb.ChangeInvisibleDurationResponse(
            status=status(pb.OK), receipt_handle=receipt.encode()
        )

    async def forward(
        self, call: GrpcCall, request: pb.ForwardMessageToDeadLetterQueueRequest
    ) -> pb.ForwardMessageToDeadLetterQueueResponse:
        """Makes a message a dead letter.

        Raises:
            CallRefused: the handle does not count.
            SprocketError: the broker refuses, or cannot be reached.
        """
        topic, group = checks.topic_name(request.topic), checks.group_name(request.group)
        newest = await self._renewals.take(call.metadata[CLIENT_ID], request.receipt_handle)
        receipt = ReceiptHandle.parse(newest).of_lite(request.lite_topic)
        await self._receipts.give_up(group, topic, receipt, request.message_id)
        return pb.ForwardMessageToDeadLetterQueueResponse(status=status(pb.OK))


def _parsed(text: str, lite: str) -> ReceiptHandle | pb.Status:
    try:
        return ReceiptHandle.parse(text).of_lite(lite)
    except CallRefused as error:
        return status_of_error(error)


def _together(receipts: Sequence[ReceiptHandle | pb.Status | None]) -> Iterator[list[int]]:
    """The indexes of those that have one check point; each other one by itself."""
    places: dict[tuple[object, ...], list[int]] = {}
    for at, each in enumerate(receipts):
        key: tuple[object, ...] = (at,)
        if isinstance(each, ReceiptHandle) and not each.handle.is_in_order:
            handle = each.handle
            if 0 <= handle.offset - handle.start_offset < _BITS_MAX:
                key = (*handle[:-1], "together")
        places.setdefault(key, []).append(at)
    yield from places.values()


def _set(statuses: list[pb.Status | None], places: Sequence[int], found: pb.Status) -> None:
    for place in places:
        statuses[place] = found


def _status_of(reply: Command) -> pb.Status:
    try:
        checked(reply)
    except SprocketError as error:
        return status_of_error(error)
    return status(pb.OK)


async def _settled(
    request: pb.AckMessageRequest,
    statuses: list[pb.Status | None],
    waiting: Sequence[tuple[list[int], Awaitable[Command]]],
) -> pb.AckMessageResponse:
    found = await asyncio.gather(*(each for _, each in waiting), return_exceptions=True)
    for (places, _), reply in zip(waiting, found, strict=True):
        if isinstance(reply, BaseException):
            _set(statuses, places, status_of_error(reply))
        else:
            _set(statuses, places, _status_of(reply))
    return _response(request, statuses)


def _response(
    request: pb.AckMessageRequest, statuses: Sequence[pb.Status | None]
) -> pb.AckMessageResponse:
    made = pb.AckMessageResponse()
    codes = []
    for entry, each in zip(request.entries, statuses, strict=True):
        assert each is not None
        made.entries.add(
            message_id=entry.message_id, receipt_handle=entry.receipt_handle, status=each
        )
        codes.append(each.code)
    made.status.CopyFrom(status_of_entries(codes, "ack message result is empty"))
    return made
