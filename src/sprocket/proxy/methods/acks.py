"""AckMessage, ChangeInvisibleDuration, ForwardMessageToDeadLetterQueue.

A client names a message by the handle that it got. If the proxy keeps the message invisible, the
broker knows another one by now.
Source: AckMessageActivity, ChangeInvisibleDurationActivity, ForwardMessageToDLQActivity of RocketMQ
5.3 (module proxy).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

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
_ENTRIES_MAX = 4096


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
        client_id = call.metadata[CLIENT_ID]
        outcomes = [self._ack_one(client_id, group, topic, each) for each in request.entries]
        if any(not isinstance(each, pb.Status) for each in outcomes):
            return self._later(request, outcomes)
        return _response(request, outcomes)  # type: ignore[arg-type]

    def _ack_one(
        self, client_id: str, group: str, topic: str, entry: pb.AckMessageEntry
    ) -> pb.Status | Awaitable[pb.Status]:
        text = entry.receipt_handle
        if self._renewals.has(client_id, text):
            return self._ack_kept(client_id, group, topic, text)
        try:
            outcome = self._receipts.acknowledge(group, topic, ReceiptHandle.parse(text))
        except SprocketError as error:
            return status_of_error(error)
        return _status_of(outcome) if isinstance(outcome, Command) else _later_status(outcome)

    async def _ack_kept(self, client_id: str, group: str, topic: str, text: str) -> pb.Status:
        newest = await self._renewals.take(client_id, text)
        try:
            outcome = self._receipts.acknowledge(group, topic, ReceiptHandle.parse(newest))
        except SprocketError as error:
            return status_of_error(error)
        if isinstance(outcome, Command):
            return _status_of(outcome)
        return await _later_status(outcome)

    async def _later(
        self,
        request: pb.AckMessageRequest,
        outcomes: list[pb.Status | Awaitable[pb.Status]],
    ) -> pb.AckMessageResponse:
        waiting = [each for each in outcomes if not isinstance(each, pb.Status)]
        settled = iter(await asyncio.gather(*waiting))
        statuses = [each if isinstance(each, pb.Status) else next(settled) for each in outcomes]
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
            group, topic, ReceiptHandle.parse(newest), max(milliseconds, 1)
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
        await self._receipts.give_up(group, topic, ReceiptHandle.parse(newest), request.message_id)
        return pb.ForwardMessageToDeadLetterQueueResponse(status=status(pb.OK))


def _status_of(reply: Command) -> pb.Status:
    try:
        checked(reply)
    except SprocketError as error:
        return status_of_error(error)
    return status(pb.OK)


async def _later_status(outcome: Awaitable[Command]) -> pb.Status:
    try:
        return _status_of(await outcome)
    except SprocketError as error:
        return status_of_error(error)


def _response(request: pb.AckMessageRequest, statuses: list[pb.Status]) -> pb.AckMessageResponse:
    made = pb.AckMessageResponse()
    for entry, each in zip(request.entries, statuses, strict=True):
        made.entries.add(
            message_id=entry.message_id, receipt_handle=entry.receipt_handle, status=each
        )
    codes = [each.code for each in statuses]
    made.status.CopyFrom(status_of_entries(codes, "ack message result is empty"))
    return made
