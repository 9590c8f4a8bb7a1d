"""Messages that consumers could not consume: they are retried later, or become dead letters.

Consumers send them back in two ways: by the log offset of the stored message (code 36), which is
answered here; or, ordered consumers and clients whose first attempt failed, by an ordinary send to
the retry topic.
Source: AbstractSendMessageProcessor.consumerSendMsgBack of RocketMQ 5.x.
"""

from __future__ import annotations

from collections.abc import Awaitable

from sprocket.auth.needs import SUB
from sprocket.base.errors import IllegalMessage, OffsetOutOfRange, SystemFailure
from sprocket.broker.dispatch import Endpoints
from sprocket.broker.sending.acknowledgement import Acknowledgement
from sprocket.broker.sending.destination import Intake
from sprocket.broker.sending.group_rules import GroupRules
from sprocket.broker.sending.ingress import Ingress
from sprocket.broker.tables.rights import Rights
from sprocket.broker.tables.volumes import Volumes
from sprocket.message.drafting import copy_draft
from sprocket.message.ids import offset_id
from sprocket.message.inner_batch import INNER_BATCH
from sprocket.message.properties import decode_bytes
from sprocket.message.record import parse
from sprocket.message.topic import retry_topic
from sprocket.protocol.codes import RequestCode
from sprocket.protocol.command import Command, Reply
from sprocket.protocol.requests.send import SendBack
from sprocket.remoting.transport import Peer
from sprocket.store.store import Store


class SendBacks:
    """Answers requests that send a message back (36)."""

    def __init__(
        self,
        store: Store,
        ingress: Ingress,
        acknowledgement: Acknowledgement,
        *,
        rules: GroupRules,
        volumes: Volumes,
        rights: Rights,
    ) -> None:
        self._store = store
        self._rights = rights
        self._ingress = ingress
        self._acknowledgement = acknowledgement
        self._rules = rules
        self._volumes = volumes

    def endpoints(self) -> Endpoints:
        """The endpoints, by request code."""
        return {RequestCode.CONSUMER_SEND_MSG_BACK: self.send_back}

    def send_back(self, command: Command, peer: Peer) -> Reply | Awaitable[Reply]:
        """Stores a message again: for a retry, or as a dead letter.

        Raises:
            GroupNotFound: the group is unknown.
            NoPermission: the broker or the retry topic is not writable, or whoever asks may not
                read the message's topic.
            SystemFailure: there is no such message.
            IllegalMessage: it is a batch, of which only one message failed.
            DiskFull: the disk is full.
        """
        header = command.read(SendBack)
        retry = self._rules.retry_of_send_back(header, command.version)
        if retry is None:
            return Reply()
        try:
            raw = self._store.lookup(header.offset)
        except OffsetOutOfRange:
            raise SystemFailure(f"look message by offset failed, {header.offset}") from None
        record = parse(raw)
        if record.topic != retry_topic(header.group):
            self._rights.require(command, peer, record.topic, SUB, named=header.origin_topic)
        if record.sys_flag & INNER_BATCH:
            raise IllegalMessage("a batch cannot be sent back: send the message of it as a new one")
        properties = decode_bytes(record.properties)
        draft = copy_draft(
            record, properties, record.topic, queue_number=record.queue_number, tries=1
        )
        origin_id = offset_id(record.store_host, record.log_offset)
        intake = Intake(draft, properties, retry._replace(origin_id=origin_id))
        receipt = self._ingress.accept(intake)
        self._volumes.returned(header.group, record.topic)
        return self._acknowledgement.without_header(receipt.last)
