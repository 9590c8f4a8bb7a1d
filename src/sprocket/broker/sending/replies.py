"""Reply messages to request messages (codes 324 and 325): pushed to the requester (326) and stored.

The requester is the producer whose client id is in the properties of the reply message. If the push
fails, the sender of the reply message gets an error; the message is stored in the cluster's reply
topic in any case.
Source: ReplyMessageProcessor of RocketMQ 4.9 and 5.x.
"""

from __future__ import annotations

from sprocket.base.errors import IllegalMessage, SystemFailure
from sprocket.base.ports import Clock
from sprocket.broker.dispatch import Endpoints
from sprocket.broker.members.callbacks import call_client
from sprocket.broker.sending.acknowledgement import Acknowledgement, replied
from sprocket.broker.sending.destination import Intake
from sprocket.broker.sending.ingress import Ingress
from sprocket.broker.sending.intake import Placing, check_room
from sprocket.broker.sending.stamp import Stamp
from sprocket.broker.tables.clients import ClientTable
from sprocket.message import properties as names
from sprocket.message.drafting import drafted
from sprocket.message.hosts import pack
from sprocket.message.properties import PROPERTIES_BYTES_MAX, decode, encode
from sprocket.protocol.codes import RequestCode, ResponseCode
from sprocket.protocol.command import Buffer, Command, Reply
from sprocket.protocol.requests.send import (
    PushReplyMessage,
    SendMessage,
    SendMessageV2,
    SendReplyMessage,
    SendReplyMessageV2,
)
from sprocket.remoting.transport import Peer


class Replies:
    """Passes reply messages on to the requesters.

    Args:
        address: this broker's address, which the push contains.
    """

    def __init__(
        self,
        clients: ClientTable,
        placing: Placing,
        ingress: Ingress,
        acknowledgement: Acknowledgement,
        *,
        stamp: Stamp,
        clock: Clock,
        address: str,
    ) -> None:
        self._clients = clients
        self._placing = placing
        self._ingress = ingress
        self._acknowledgement = acknowledgement
        self._stamp = stamp
        self._clock = clock
        self._address = address

    def endpoints(self) -> Endpoints:
        """The endpoints, by request code."""
        return {
            RequestCode.SEND_REPLY_MESSAGE: self.long,
            RequestCode.SEND_REPLY_MESSAGE_V2: self.short,
        }

    async def long(self, command: Command, peer: Peer) -> Reply:
        """A reply message whose header has long names."""
        return await self._pass_on(command.read(SendReplyMessage), command.body, peer)

    async def short(self, command: Command, peer: Peer) -> Reply:
        """The same with names of one letter."""
        return await self._pass_on(command.read(SendReplyMessageV2), command.body, peer)

    async def _pass_on(
        self, header: SendMessage | SendMessageV2, body: Buffer, peer: Peer
    ) -> Reply:
        text = header.properties or ""
        if not body or len(text) > PROPERTIES_BYTES_MAX:
            raise IllegalMessage("an answer has a body, and properties that can be stored")
        topic, queue_number = self._placing.place(header, peer)
        properties = decode(text)
        self._stamp.mark(properties, self._clock.now_ms())
        check_room(text, properties)
        remark = await self._push(header, properties, body, peer)
        draft = drafted(
            properties,
            topic=topic.topic_name,
            queue_number=queue_number,
            body=body,
            flag=header.flag,
            sys_flag=header.sys_flag,
            born_ms=header.born_timestamp,
            born_host=pack(peer.address),
            reconsume_times=header.reconsume_times,
        )
        receipt = self._ingress.accept(Intake(draft, properties))
        stored = self._acknowledgement.header(receipt)
        stored.transaction_id = None
        if remark is not None:
            return Reply(stored, code=ResponseCode.SYSTEM_ERROR, remark=remark)
        settled = self._acknowledgement.settled(
            receipt.last, is_awaited=receipt.destination.is_awaited
        )
        return Reply(stored) if settled is None else await replied(settled, stored)

    async def _push(
        self,
        header: SendMessage | SendMessageV2,
        properties: dict[str, str],
        body: Buffer,
        peer: Peer,
    ) -> str | None:
        """Pushes the reply message to the requester; gives the remark if that fails, else None."""
        asker_id = properties.get(names.REPLY_TO_CLIENT)
        if asker_id is None:
            return f"{names.REPLY_TO_CLIENT} is null, can not reply message"
        asker = self._clients.producer_of(asker_id)
        if asker is None:
            return f"push reply message fail, channel of <{asker_id}> not found."
        now_ms = self._clock.now_ms()
        push = PushReplyMessage(
            producer_group=header.producer_group,
            topic=header.topic,
            default_topic=header.default_topic,
            default_topic_queue_nums=header.default_topic_queue_nums,
            queue_id=header.queue_id,
            sys_flag=header.sys_flag,
            born_timestamp=header.born_timestamp,
            flag=header.flag,
            properties=encode({**properties, names.PUSH_REPLY_MS: str(now_ms)}),
            reconsume_times=header.reconsume_times,
            unit_mode=header.unit_mode,
            born_host=peer.address,
            store_host=self._address,
            store_timestamp=now_ms,
        )
        try:
            answer = await call_client(asker, push, body=body)
        except SystemFailure:
            return f"push reply message to {asker_id}fail."
        return None if not answer.code else f"push reply message to {asker_id}fail."
