"""SendMessage and RecallMessage.

A message of a message group goes to the queue of its group, any other to the next queue in turn. A
send that fails is not repeated here: clients do that, and the broker that failed is avoided then.
Source: SendMessageActivity, RecallMessageActivity, ProducerProcessor of RocketMQ 5.3's proxy.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence

from sprocket.base.errors import (
    FlushDiskTimeout,
    FlushSlaveTimeout,
    ServiceNotAvailable,
    SlaveNotAvailable,
    SystemBusy,
    TopicNotFound,
    TransportError,
    UsageError,
)
from sprocket.base.ports import Clock, Entropy
from sprocket.clientcore.queue_choice import Faults, QueueChooser
from sprocket.message.ids import parse_offset_id
from sprocket.message.queue import QueueId
from sprocket.message.recall import RecallHandle
from sprocket.protocol.command import Buffer, Command
from sprocket.protocol.requests.send import (
    RecallMessage,
    RecallReply,
    SendMessageV2,
    SendReply,
)
from sprocket.proxy.brokers.brokers import Brokers, KnownTopic
from sprocket.proxy.clients.served_clients import CLIENT_ID, ServedClients
from sprocket.proxy.config import ProxyConfig
from sprocket.proxy.http2.calls import GrpcCall
from sprocket.proxy.messages import checks
from sprocket.proxy.messages import rocketmq_pb2 as pb
from sprocket.proxy.messages.group_queues import queue_of_group
from sprocket.proxy.messages.sent_messages import (
    SentMessage,
    batch_of,
    check_type,
    read_message,
)
from sprocket.proxy.messages.statuses import CallRefused, name_of, status
from sprocket.proxy.messages.transaction_ids import TransactionId
from sprocket.remoting.transport import Peer

#: Messages in one request at most.
_TOGETHER_MAX = 1024

#: The codes of replies to sends that did not end well, though the message is stored.
_STORED = {
    FlushDiskTimeout.code: (pb.MASTER_PERSISTENCE_TIMEOUT, "FLUSH_DISK_TIMEOUT"),
    FlushSlaveTimeout.code: (pb.SLAVE_PERSISTENCE_TIMEOUT, "FLUSH_SLAVE_TIMEOUT"),
    SlaveNotAvailable.code: (pb.HA_NOT_AVAILABLE, "SLAVE_NOT_AVAILABLE"),
}
_REFUSES_FOR_NOW = (SystemBusy.code, ServiceNotAvailable.code)


class SendMethods:
    """Sends and recalls."""

    def __init__(
        self,
        brokers: Brokers,
        clients: ServedClients,
        config: ProxyConfig,
        *,
        clock: Clock,
        entropy: Entropy,
    ) -> None:
        self._brokers = brokers
        self._clients = clients
        self._config = config
        self._clock = clock
        self._faults = Faults()
        self._chooser = QueueChooser(entropy.below(1 << 16), self._faults)
        self._loop = asyncio.get_running_loop()

    def send(
        self, call: GrpcCall, request: pb.SendMessageRequest
    ) -> pb.SendMessageResponse | Awaitable[pb.SendMessageResponse]:
        """Sends messages of one topic.

        Raises:
            CallRefused: the service refuses them.
            SprocketError: the broker does, or cannot be reached.
        """
        given = request.messages
        if not given:
            raise CallRefused(pb.MESSAGE_CORRUPTED, "no message to send")
        if len(given) > _TOGETHER_MAX:
            raise CallRefused(pb.BAD_REQUEST, f"at most {_TOGETHER_MAX} messages go together")
        now_ms, in_batch = self._clock.now_ms(), len(given) > 1
        messages = [
            read_message(each, self._config, address=call.address, now_ms=now_ms, in_batch=in_batch)
            for each in given
        ]
        first = messages[0]
        client = self._clients.find(call.metadata.get(CLIENT_ID, ""))
        peer = None if client is None else client.peer
        topic = self._brokers.topics.known(first.topic)
        kind = self._brokers.type_known(first.topic)
        if topic is None or (kind is None and self._config.check_types):
            return self._find_and_send(messages, peer)
        return self._send(messages, topic, kind, peer)

    async def _find_and_send(
        self, messages: Sequence[SentMessage], peer: Peer | None
    ) -> pb.SendMessageResponse:
        topic = await self._brokers.topic(messages[0].topic)
        kind = None
        if self._config.check_types:
            kind = await self._brokers.type_of(messages[0].topic)
        outcome = self._send(messages, topic, kind, peer)
        return outcome if isinstance(outcome, pb.SendMessageResponse) else await outcome

    def _send(
        self,
        messages: Sequence[SentMessage],
        topic: KnownTopic,
        kind: str | None,
        peer: Peer | None,
    ) -> pb.SendMessageResponse | Awaitable[pb.SendMessageResponse]:
        if self._config.check_types and kind is not None:
            for message in messages:
                check_type(message.type, kind)
        first = messages[0]
        queue = self._queue(topic, first.message_group)
        header: SendMessageV2
        body: Buffer
        if len(messages) == 1:
            header, body = first.header(queue.number, queue.broker), first.body
        else:
            header, body = batch_of(messages, queue.number, queue.broker)
        outcome = self._brokers.call(
            topic.masters[queue.broker],
            header,
            body=body,
            deadline=self._brokers.deadline(),
            peer=peer,
        )
        if isinstance(outcome, Command):
            return self._response(messages, queue, outcome)
        return self._later(messages, queue, outcome)

    def _queue(self, topic: KnownTopic, message_group: str) -> QueueId:
        queues = topic.writable
        if not queues:
            raise CallRefused(pb.FORBIDDEN, "no writable queue")
        if message_group:
            return queues[queue_of_group(message_group, len(queues))]
        return self._chooser.next(queues, self._loop.time())

    async def _later(
        self, messages: Sequence[SentMessage], queue: QueueId, outcome: Awaitable[Command]
    ) -> pb.SendMessageResponse:
        began = self._loop.time()
        try:
            reply = await outcome
        except TransportError:
            self._faults.failed(queue.broker, self._loop.time())
            self._brokers.failed(queue.topic, queue.broker)
            raise
        now = self._loop.time()
        self._faults.answered(queue.broker, now - began, now)
        return self._response(messages, queue, reply)

    def _response(
        self, messages: Sequence[SentMessage], queue: QueueId, reply: Command
    ) -> pb.SendMessageResponse:
        if reply.code and reply.code not in _STORED:
            if reply.code in _REFUSES_FOR_NOW:
                self._faults.failed(queue.broker, self._loop.time())
            if reply.code == ServiceNotAvailable.code:  # another one may be the master
                self._brokers.failed(queue.topic, queue.broker)
            if reply.code == TopicNotFound.code:
                self._brokers.lost(queue.topic)
            raise reply.error()
        made = pb.SendMessageResponse()
        code, text = pb.OK, "OK"
        if reply.code:
            code, kind = _STORED[reply.code]
            text = f"send message failed, sendStatus={kind}"
        made.status.code = code
        made.status.message = name_of(code)
        header = reply.read(SendReply) if code == pb.OK else None
        for at, message in enumerate(messages):
            entry = made.entries.add()
            entry.status.code = code
            entry.status.message = text
            if header is not None:
                _fill(entry, message, header, queue.broker, at)
        return made

    async def recall(
        self, call: GrpcCall, request: pb.RecallMessageRequest
    ) -> pb.RecallMessageResponse:
        """Takes back a message that waits for its time.

        Raises:
            CallRefused: the handle is none, or the topic is for other messages.
            SprocketError: the broker refuses, or cannot be reached.
        """
        topic = checks.topic_name(request.topic)
        if self._config.check_types:
            check_type(pb.DELAY, await self._brokers.type_of(topic))
        try:
            handle = RecallHandle.parse(request.recall_handle)
        except UsageError as error:
            raise CallRefused(pb.INTERNAL_SERVER_ERROR, str(error)) from None
        address = await self._brokers.address_of(handle.broker, topic)
        header = RecallMessage(
            topic=topic, recall_handle=request.recall_handle, bname=handle.broker
        )
        outcome = self._brokers.call(address, header, deadline=self._brokers.deadline())
        reply = outcome if isinstance(outcome, Command) else await outcome
        recalled = reply.checked().read(RecallReply)
        return pb.RecallMessageResponse(status=status(pb.OK), message_id=recalled.msg_id or "")


def _fill(
    entry: pb.SendResultEntry, message: SentMessage, header: SendReply, broker: str, at: int
) -> None:
    entry.message_id = message.message_id
    entry.offset = header.queue_offset + at
    if message.type == pb.TRANSACTION:
        log_offset = parse_offset_id(header.msg_id)[1]
        entry.transaction_id = TransactionId(broker, log_offset, header.queue_offset).encode()
    else:
        entry.transaction_id = message.message_id
    if header.recall_handle:
        entry.recall_handle = header.recall_handle
