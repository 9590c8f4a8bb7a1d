"""The replies to sends: of one, of a batch, and of many that came in one read.

A reply says where the message is stored. Where the broker has to wait for its disk, it goes out
after that; replies that wait for the same share one wait.
Source: SendMessageProcessor of RocketMQ 5.x.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from functools import partial

import msgspec

from sprocket.base.errors import LocalProtocolError
from sprocket.broker.config import BrokerConfig
from sprocket.broker.dispatch import Together
from sprocket.broker.sending.destination import Destination
from sprocket.broker.sending.ingress import Ingress
from sprocket.broker.sending.intake import IntakeBatch
from sprocket.broker.sending.stamp import trace_text
from sprocket.message.ids import offset_id
from sprocket.protocol.codes import RequestCode, ResponseCode
from sprocket.protocol.command import JSON, ONEWAY, Command, Header, Reply
from sprocket.protocol.requests.send import SendReply
from sprocket.protocol.sent import SentForm
from sprocket.remoting.answers import Answered, Outcome
from sprocket.store.writing.appending import Appended


class Marks(Header, kw_only=True):
    """What a refused send says besides its code."""

    msg_region: str = msgspec.field(name="MSG_REGION")
    trace_on: str | None = msgspec.field(default=None, name="TRACE_ON")


class Acknowledgement:
    """Writes replies to sends.

    Args:
        store_host: packed address that offset ids carry.
    """

    def __init__(self, ingress: Ingress, config: BrokerConfig, *, store_host: bytes) -> None:
        self._ingress = ingress
        self._host = store_host
        self._region, self._trace = config.region, trace_text(config)
        self._form = SentForm(store_host=store_host, region=self._region, trace_on=self._trace)

    def refusals(self) -> dict[int, Header]:
        """The headers that go with errors, by request code."""
        marks = Marks(msg_region=self._region, trace_on=self._trace)
        sends = (
            RequestCode.SEND_MESSAGE,
            RequestCode.SEND_MESSAGE_V2,
            RequestCode.SEND_BATCH_MESSAGE,
        )
        return {
            **dict.fromkeys(sends, marks),
            RequestCode.RECALL_MESSAGE: Marks(msg_region=self._region),
        }

    def of_one(self, command: Command, appended: Appended, destination: Destination) -> Outcome:
        """The reply to a send, now or once the disk has the message."""
        settled = self._ingress.settled(appended, is_awaited=destination.is_awaited)
        if settled is None:
            return self._at_once(command, appended, destination)
        return replied(settled, self._header_of(appended, destination))

    def of_run(
        self,
        commands: Sequence[Command],
        appended: Sequence[Appended],
        destinations: Sequence[Destination],
    ) -> list[Outcome] | Together:
        """The replies to the first of some sends: as many as were stored.

        The last of them is written last, so one wait for it is enough for all.
        """
        if self._ingress.is_settling:
            if not all(each.is_awaited for each in destinations):
                return list(map(self.of_one, commands, appended, destinations))
            settled = self._ingress.settled(appended[-1])
            if settled is not None:
                replies = partial(self._together, commands, appended, destinations)
                return Together(len(appended), settled, replies)
        return list(map(self._at_once, commands, appended, destinations))

    def of_batch(self, appended: Sequence[Appended], batch: IntakeBatch) -> Outcome:
        """The reply to a batch: all offset ids, the first queue offset, the batch's unique key."""
        header = self.header(appended[0], batch.queue_number, batch.unique_key)
        header.msg_id = ",".join(offset_id(self._host, each.log_offset) for each in appended)
        settled = self._ingress.settled(appended[-1], is_awaited=batch.is_awaited)
        return Reply(header) if settled is None else replied(settled, header)

    def without_header(self, appended: Appended) -> Reply | Awaitable[Reply]:
        """The reply to a request that asks only whether a message was stored."""
        settled = self._ingress.settled(appended)
        return Reply() if settled is None else replied(settled)

    def header(self, appended: Appended, queue_number: int, unique_key: str) -> SendReply:
        """The header that says where a message is stored."""
        return SendReply(
            msg_id=offset_id(self._host, appended.log_offset),
            queue_id=queue_number,
            queue_offset=appended.queue_offset,
            transaction_id=unique_key,
            msg_region=self._region,
            trace_on=self._trace,
        )

    def _header_of(self, appended: Appended, destination: Destination) -> SendReply:
        header = self.header(appended, destination.queue_number, appended.unique_key)
        header.recall_handle = destination.handle.decode("ascii") or None
        return header

    # A broker writes more of these than of anything else: filling the gaps of a text costs a fifth
    # of what encoding a header costs.
    def _at_once(self, command: Command, appended: Appended, destination: Destination) -> Answered:
        if command.flag & ONEWAY:
            return None
        if command.serialization == JSON:
            try:
                return self._form.frame(
                    command.opaque, appended, destination.queue_number, destination.handle
                )
            except LocalProtocolError:  # it cannot be written at all, which its connection reports
                pass
        return Reply(self._header_of(appended, destination))

    def _together(
        self,
        commands: Sequence[Command],
        appended: Sequence[Appended],
        destinations: Sequence[Destination],
        code: int,
    ) -> list[Answered]:
        """The replies to sends that waited together, once their response code is known."""
        if code == ResponseCode.SUCCESS:
            return list(map(self._at_once, commands, appended, destinations))
        headers = map(self._header_of, appended, destinations)
        return [Reply(header, code=code) for header in headers]


async def replied(settled: Awaitable[int], header: Header | None = None) -> Reply:
    """The reply once it is known whether the message is where it has to be."""
    return Reply(header, code=await settled)
