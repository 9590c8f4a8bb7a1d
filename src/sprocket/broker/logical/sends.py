"""Sends to logical queues: stored in a queue of this broker, answered with logical offsets.

No send is for a broker's own queue: a part to which nothing is added any more would get messages.

What waits elsewhere before it is in its topic, a delayed message or one of a transaction, is
refused: its queue may have moved to another broker by then, and readers would have passed it.
RocketMQ takes such messages and loses them after a move.

Source: SendMessageProcessor.rewriteResponseForStaticTopic of RocketMQ 5.3.
"""

from __future__ import annotations

from msgspec.structs import replace

from sprocket.base.errors import IllegalMessage, NotLeaderForQueue
from sprocket.base.ports import Clock
from sprocket.broker.dispatch import Endpoints
from sprocket.broker.logical.mapped import MappedQueues
from sprocket.broker.sending.acknowledgement import Acknowledgement
from sprocket.broker.sending.destination import SPECIAL, DelayRules, Intake, destination
from sprocket.broker.sending.ingress import Ingress
from sprocket.broker.sending.intake import SendHeader, SendReader
from sprocket.clientcore.logical_queues import led, logical_of_send
from sprocket.protocol.codes import RequestCode
from sprocket.protocol.command import Command
from sprocket.protocol.requests.send import SendBatch, SendMessage, SendMessageV2
from sprocket.remoting.endpoints import EventualResponse
from sprocket.remoting.transport import Peer

_KINDS: dict[int, type[SendHeader]] = {
    RequestCode.SEND_MESSAGE: SendMessage,
    RequestCode.SEND_MESSAGE_V2: SendMessageV2,
    RequestCode.SEND_BATCH_MESSAGE: SendBatch,
}


class LogicalSends:
    """Answers sends to static topics."""

    def __init__(
        self,
        queues: MappedQueues,
        reader: SendReader,
        ingress: Ingress,
        acknowledgement: Acknowledgement,
        *,
        rules: DelayRules,
        clock: Clock,
    ) -> None:
        self._queues = queues
        self._reader = reader
        self._ingress = ingress
        self._acknowledgement = acknowledgement
        self._rules = rules
        self._clock = clock
        self._turn = 0

    def around(self, inner: Endpoints) -> Endpoints:
        """The endpoints of sends, for static topics and for all others."""
        routed = self._queues.routed
        return {
            code: routed(inner[code], kind, self._send, has_physical=False)
            for code, kind in _KINDS.items()
        }

    def _send(self, header: SendHeader, command: Command, peer: Peer) -> EventualResponse:
        topic, number = header.topic, self._number(header)
        item = self._queues.parts(topic, number)[-1]
        asked = replace(header, queue_id=item.queue_id)
        intake = self._reader.read_send(asked, command, peer)
        self._check(intake, item.queue_id)
        receipt = self._ingress.accept(intake)
        receipt.destination.queue_number = number
        stored = [
            replace(each, queue_offset=logical_of_send(item, each.queue_offset))
            for each in receipt.stored
        ]
        return self._acknowledgement.of_one(command, receipt._replace(stored=stored))

    def _number(self, header: SendHeader) -> int:
        """The logical queue; for a negative number one of those that this broker leads, in turn.

        Raises:
            NotLeaderForQueue: it leads none.
        """
        if header.queue_id >= 0:
            return header.queue_id
        mine = list(led(self._queues.detail(header.topic)))
        if not mine:
            raise NotLeaderForQueue(f"this broker leads no queue of {header.topic}")
        self._turn += 1
        return mine[self._turn % len(mine)]

    def _check(self, intake: Intake, number: int) -> None:
        """Refuses what would not be added to its queue now.

        Raises:
            IllegalMessage: it has to wait, or its priority asks for another queue.
        """
        draft, properties = intake.draft, intake.properties
        if draft.queue_number != number:
            raise IllegalMessage(f"static topic {draft.topic} takes no messages with a priority")
        if SPECIAL.isdisjoint(properties) or intake.parts or intake.inner_count:
            return
        decided = destination(intake, self._rules, now_ms=self._clock.now_ms())
        if decided.draft.topic != draft.topic:
            raise IllegalMessage(
                f"static topic {draft.topic} takes no delayed and no transactional messages: their "
                "queue may move before they are in it"
            )
