"""What is done with a message by its receipt: acknowledged, hidden for longer or shorter, given up.

Source: ConsumerProcessor and ProducerProcessor of RocketMQ 5.3 (module proxy).
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence

from sprocket.base.errors import ReplyError
from sprocket.base.ports import Clock
from sprocket.clientcore.pops import ack_item, acknowledging, hiding
from sprocket.protocol.bodies import AckBatchBody
from sprocket.protocol.codes import ResponseCode
from sprocket.protocol.command import Command, Header
from sprocket.protocol.requests.pop import AckMessages, InvisibleReply
from sprocket.protocol.requests.send import SendBack
from sprocket.proxy.brokers.brokers import Brokers
from sprocket.proxy.brokers.popped_replies import ReceiptHandle
from sprocket.proxy.messages import rocketmq_pb2 as pb
from sprocket.proxy.messages.statuses import CallRefused

#: A broker's code for a handle that does not count: the message became visible, or there was a
#: reset.
_VOID = ResponseCode.NO_MESSAGE
_AS_DEAD_LETTER = -1


class Receipts:
    """Asks the brokers of receipts."""

    def __init__(self, brokers: Brokers, clock: Clock) -> None:
        self._brokers = brokers
        self._clock = clock

    def acknowledge(
        self, group: str, topic: str, receipt: ReceiptHandle
    ) -> Command | Awaitable[Command]:
        """The broker's reply to the acknowledgement of a message.

        Raises:
            CallRefused: the handle has expired.
            SprocketError: the broker is unknown, or cannot be reached.
        """
        self._check(receipt)
        header = acknowledging(group, receipt.topic(topic, group), receipt.handle)
        header.lite_topic = receipt.lite or None
        return self._ask(receipt, topic, header)

    def acknowledge_all(
        self, group: str, topic: str, receipts: Sequence[ReceiptHandle]
    ) -> Command | Awaitable[Command]:
        """The broker's reply to the acknowledgement of messages of one check point: one record of
        the broker instead of one for each. It passes over those that are gone.

        Raises:
            CallRefused: the handles have expired.
            SprocketError: the broker is unknown, or cannot be reached.
        """
        self._check(receipts[0])
        item = ack_item(group, topic, [each.handle for each in receipts])
        body = AckBatchBody(acks=[item], broker_name=receipts[0].handle.broker).encode()
        return self._ask(receipts[0], topic, AckMessages(), body)

    async def hide(
        self, group: str, topic: str, receipt: ReceiptHandle, milliseconds: int, *,
        suspend: bool = False,
    ) -> ReceiptHandle:  # fmt: skip
        """Changes for how long a message is invisible, from now on; returns its new receipt.

        Args:
            suspend: whether its delivery does not count; only of a message with a lite topic.

        Raises:
            CallRefused: the handle has expired, or does not count any more.
            SprocketError: the broker refuses, or cannot be reached.
        """
        self._check(receipt)
        header = hiding(group, receipt.topic(topic, group), receipt.handle, milliseconds)
        header.lite_topic, header.suspend = receipt.lite or None, suspend
        reply = checked(await _awaited(self._ask(receipt, topic, header)))
        return receipt.changed(reply.read(InvisibleReply))

    async def give_up(
        self, group: str, topic: str, receipt: ReceiptHandle, message_id: str
    ) -> None:
        """Makes a message a dead letter of its group.

        Raises:
            CallRefused: the handle does not say where the message lies.
            SprocketError: the broker refuses, or cannot be reached.
        """
        if receipt.log_offset < 0:
            raise CallRefused(pb.INVALID_RECEIPT_HANDLE, "commit log offset is empty")
        header = SendBack(
            offset=receipt.log_offset,
            group=group,
            delay_level=_AS_DEAD_LETTER,
            origin_msg_id=message_id,
            origin_topic=receipt.topic(topic, group),
            max_reconsume_times=0,
            bname=receipt.handle.broker,
        )
        (await _awaited(self._ask(receipt, topic, header))).checked()
        await _awaited(self.acknowledge(group, topic, receipt))

    def _check(self, receipt: ReceiptHandle) -> None:
        if receipt.handle.due_ms <= self._clock.now_ms():
            raise CallRefused(pb.INVALID_RECEIPT_HANDLE, "receipt handle is expired")

    def _ask(
        self, receipt: ReceiptHandle, topic: str, header: Header, body: bytes = b""
    ) -> Command | Awaitable[Command]:
        address = self._brokers.address(receipt.handle.broker)
        if address is None:
            return self._find_and_ask(receipt.handle.broker, topic, header, body)
        return self._brokers.call(address, header, body=body, deadline=self._brokers.deadline())

    async def _find_and_ask(self, broker: str, topic: str, header: Header, body: bytes) -> Command:
        address = await self._brokers.address_of(broker, topic)
        return await _awaited(
            self._brokers.call(address, header, body=body, deadline=self._brokers.deadline())
        )


def checked(reply: Command) -> Command:
    """The reply of a broker, if it is a success.

    Raises:
        CallRefused: the handle does not count any more.
        ReplyError: any other refusal.
    """
    try:
        return reply.checked()
    except ReplyError as error:
        if error.code == _VOID:
            raise CallRefused(pb.INVALID_RECEIPT_HANDLE, error.remark) from None
        raise


async def _awaited(outcome: Command | Awaitable[Command]) -> Command:
    return outcome if isinstance(outcome, Command) else await outcome
