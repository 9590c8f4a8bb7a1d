"""The replies to sends: to a single send, to a batch, and to many sends of one read.

A reply contains the offsets of the stored message. With SYNC_FLUSH it is sent after the flush to
the disk, with SYNC_MASTER when enough slaves have the message; replies to sends of one read share
one wait.
Source: SendMessageProcessor of RocketMQ 5.x.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from functools import partial

import msgspec

from sprocket.base.deadline import Deadline
from sprocket.broker.dispatch import SharedWait
from sprocket.broker.members.replication import Replication
from sprocket.broker.sending.destination import Destination
from sprocket.broker.sending.ingress import Receipt
from sprocket.broker.sending.stamp import trace_text
from sprocket.broker.settings import BrokerSettings
from sprocket.message.ids import offset_id
from sprocket.message.inner_batch import INNER_BATCH
from sprocket.protocol.codes import RequestCode, ResponseCode
from sprocket.protocol.command import JSON, ONEWAY, Command, Header, Reply
from sprocket.protocol.requests.send import SendReply
from sprocket.protocol.sent import SentForm
from sprocket.remoting.endpoints import EventualResponse, Response
from sprocket.store.store import Store
from sprocket.store.views.entry import EntryColumns
from sprocket.store.writing.appender import Appended


class Marks(Header, kw_only=True):
    """The header of a reply that refuses a send."""

    msg_region: str = msgspec.field(name="MSG_REGION")
    trace_on: str | None = msgspec.field(default=None, name="TRACE_ON")


class Acknowledgement:
    """Writes replies to sends.

    Args:
        store_host: the broker's address in binary form, for offset ids.
        replication: gives the response code of messages that wait for slaves.
    """

    def __init__(
        self,
        store: Store,
        settings: BrokerSettings,
        store_host: bytes,
        replication: Replication,
    ) -> None:
        self._store = store
        self._settings = settings
        self._replication = replication
        self._is_flushing = settings.store.flush == "SYNC_FLUSH"
        self._is_settling = self._is_flushing or replication.is_waiting
        self._host = store_host
        self._offset_id = f"{store_host.hex().upper()}%016X"
        #: The headers of error replies, which change with the settings.
        self._marks, self._recall_marks = Marks(msg_region=""), Marks(msg_region="")
        self.change()

    def change(self) -> None:
        """Replies what the settings say now."""
        config = self._settings.config
        self._region, self._trace = config.region, trace_text(config)
        self._form = SentForm(store_host=self._host, region=self._region, trace_on=self._trace)
        self._marks.msg_region = self._recall_marks.msg_region = self._region
        self._marks.trace_on = self._trace

    @property
    def is_at_once(self) -> bool:
        """Whether no reply waits for the disk or for slaves."""
        return not self._is_settling

    @property
    def reply_pieces(self) -> Sequence[bytes]:
        """See `SentForm.pieces`."""
        return self._form.pieces

    def refusals(self) -> dict[int, Header]:
        """The headers of error replies, by request code."""
        sends = (
            RequestCode.SEND_MESSAGE,
            RequestCode.SEND_MESSAGE_V2,
            RequestCode.SEND_BATCH_MESSAGE,
        )
        return {
            **dict.fromkeys(sends, self._marks),
            RequestCode.RECALL_MESSAGE: self._recall_marks,
        }

    def of_one(self, command: Command, receipt: Receipt) -> EventualResponse:
        """The reply to a send or a batch, at once or when it is safe."""
        settled = self.settled(receipt.last, is_awaited=receipt.destination.is_awaited)
        if settled is not None:
            return replied(settled, self.header(receipt))
        if receipt.is_batch:
            return Reply(self.header(receipt))
        return self._at_once(command, receipt.last, receipt.destination)

    def of_run(
        self,
        commands: Sequence[Command],
        appended: Sequence[Appended],
        destinations: Sequence[Destination],
    ) -> list[EventualResponse] | SharedWait:
        """The replies to the first sends of a run: as many as were stored.

        The last of them is written last, so one wait is enough for all.
        """
        if self._is_settling:
            if not all(each.is_awaited for each in destinations):
                receipts = map(Receipt, zip(appended), destinations)
                return list(map(self.of_one, commands, receipts))
            settled = self.settled(appended[-1])
            if settled is not None:
                replies = partial(self._together, commands, appended, destinations)
                return SharedWait(len(appended), settled, replies)
        return list(map(self._at_once, commands, appended, destinations))

    def of_batches(
        self, destinations: Sequence[Destination], stored: Sequence[EntryColumns]
    ) -> list[EventualResponse] | SharedWait:
        """The replies to the first batches of a run: as many as were stored."""
        headers = list(map(self._batch_header, stored, destinations))
        if not self._is_settling:
            return [Reply(header) for header in headers]
        if all(each.is_awaited for each in destinations):
            settled = self._safe(stored[-1].end)
            return SharedWait(
                len(headers), settled, lambda code: [Reply(header, code=code) for header in headers]
            )
        return [
            replied(self._safe(each.end), header) if destination.is_awaited else Reply(header)
            for each, destination, header in zip(stored, destinations, headers, strict=False)
        ]

    def _batch_header(self, stored: EntryColumns, destination: Destination) -> SendReply:
        ids = ",".join([self._offset_id] * len(stored))
        return SendReply(
            msg_id=ids % tuple(stored.log_offsets),
            queue_id=destination.queue_number,
            queue_offset=stored.queue_offset,
            transaction_id=destination.draft.unique_key,
            msg_region=self._region,
            trace_on=self._trace,
        )

    def without_header(self, appended: Appended) -> Reply | Awaitable[Reply]:
        """The reply to a request that asks only whether a message was stored."""
        return self.up_to(appended.end)

    def up_to(self, end: int, reply: Reply | None = None) -> Reply | Awaitable[Reply]:
        """The same for all that was stored before a log offset; `reply` if that is safe."""
        reply = reply or Reply()
        return replied(self._safe(end), reply.header) if self._is_settling else reply

    def code_up_to(self, end: int) -> Awaitable[int] | None:
        """The response code once all before a log offset is safe; None if nobody need wait."""
        return self._safe(end) if self._is_settling else None

    async def safe_up_to(self, end: int) -> None:
        """Returns once all before a log offset is as safe as senders are promised, or cannot be
        made so in time."""
        if self._is_settling:
            await self._safe(end)

    def header(self, receipt: Receipt) -> SendReply:
        """The header of a successful reply.

        For a batch it has all offset ids, the first queue offset, and the batch's unique key.
        """
        header = self._header_of(receipt.stored[0], receipt.destination)
        if receipt.is_batch:
            if receipt.stored[0].sys_flag & INNER_BATCH:
                header.batch_uniq_id = receipt.destination.draft.unique_key
            ids = (offset_id(self._host, each.log_offset) for each in receipt.stored)
            header.msg_id = ",".join(ids)
        return header

    def _header_of(self, appended: Appended, destination: Destination) -> SendReply:
        return SendReply(
            msg_id=offset_id(self._host, appended.log_offset),
            queue_id=destination.queue_number,
            queue_offset=appended.queue_offset,
            transaction_id=destination.draft.unique_key,
            recall_handle=destination.handle.decode("ascii") or None,
            msg_region=self._region,
            trace_on=self._trace,
        )

    # A broker writes more of these than of anything else: filling the gaps of a text gives the same
    # bytes as encoding a header, for three quarters of its time. A key that is not ASCII may not be
    # Unicode either, which only the encoder reports.
    def _at_once(self, command: Command, appended: Appended, destination: Destination) -> Response:
        if command.flag & ONEWAY:
            return None
        if command.serialization != JSON or not appended.unique_key.isascii():
            return Reply(self._header_of(appended, destination))
        number, handle = destination.queue_number, destination.handle
        return self._form.frame(command.opaque, appended, number, handle)

    def _together(
        self,
        commands: Sequence[Command],
        appended: Sequence[Appended],
        destinations: Sequence[Destination],
        code: int,
    ) -> list[Response]:
        """The replies to sends that waited together, from their response code."""
        if code == ResponseCode.SUCCESS:
            return list(map(self._at_once, commands, appended, destinations))
        headers = map(self._header_of, appended, destinations)
        return [Reply(header, code=code) for header in headers]

    def settled(self, appended: Appended, *, is_awaited: bool = True) -> Awaitable[int] | None:
        """An awaitable of the response code that a reply waits for; None if it need not wait."""
        if not self._is_settling or not is_awaited:
            return None
        return self._safe(appended.end)

    # Both waits begin at the same time, each with its own setting; if neither ends in time, the
    # reply tells of the slaves, as RocketMQ's does.
    async def _safe(self, end: int) -> int:
        """The response code once all before a log offset is as safe as senders are promised."""
        config, code = self._settings.config, ResponseCode.SUCCESS
        copied_by = Deadline.after_ms(config.slave_timeout_ms)
        if self._is_flushing:
            flushed_by = Deadline.after_ms(config.flush_timeout_ms)
            if not await self._store.flushed.reach(end, flushed_by):
                code = ResponseCode.FLUSH_DISK_TIMEOUT
        if self._replication.is_waiting:
            copied = await self._replication.reach(end, copied_by)
            return code if copied == ResponseCode.SUCCESS else copied
        return code


async def replied(settled: Awaitable[int], header: Header | None = None) -> Reply:
    """The reply with the response code that `settled` gives."""
    return Reply(header, code=await settled)
