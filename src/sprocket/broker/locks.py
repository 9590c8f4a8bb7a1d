"""Leases on queues, asked for by ordered consumers (41, 42). The rules are in `queue_locks`.

Source: AdminBrokerProcessor.lockBatchMQ, unlockBatchMQ of RocketMQ 5.x.
"""

from __future__ import annotations

from sprocket.base.errors import RemoteProtocolError
from sprocket.base.ports import Clock
from sprocket.broker.dispatch import Answers
from sprocket.broker.queue_locks import QueueLocks
from sprocket.message.queue import QueueId
from sprocket.protocol.bodies import LockBody, LockedBody, Queue
from sprocket.protocol.codes import RequestCode
from sprocket.protocol.command import Command, Reply
from sprocket.remoting.transport import Peer

#: What is in it is kept for a while, so it must not be large.
_BODY_BYTES_MAX = 1 << 20


class Locks:
    """Answers lock and unlock."""

    def __init__(self, locks: QueueLocks, clock: Clock) -> None:
        self._locks = locks
        self._clock = clock

    def answers(self) -> Answers:
        """By request code."""
        return {
            RequestCode.LOCK_BATCH_MQ: self.lock,
            RequestCode.UNLOCK_BATCH_MQ: self.unlock,
        }

    def lock(self, command: Command, peer: Peer) -> Reply:
        """Takes or renews queues; tells which of them the client holds now."""
        group, client_id, queues = _read(command)
        held = self._locks.lock(group, client_id, queues=queues, now_ms=self._clock.now_ms())
        locked = [
            Queue(broker_name=queue.broker, queue_id=queue.number, topic=queue.topic)
            for queue in held
        ]
        return Reply(body=LockedBody(locked=locked).encode())

    def unlock(self, command: Command, peer: Peer) -> Reply:
        """Gives queues back; what another client holds stays as it is."""
        self._locks.unlock(*_read(command))
        return Reply()


def _read(command: Command) -> tuple[str, str, list[QueueId]]:
    if len(command.body) > _BODY_BYTES_MAX:
        raise RemoteProtocolError(f"a lock has at most {_BODY_BYTES_MAX} bytes")
    body = LockBody.decode(command.body)
    if not body.consumer_group or not body.client_id:
        raise RemoteProtocolError("a lock needs consumerGroup and clientId")
    queues = [QueueId(queue.topic, queue.broker_name, queue.queue_id) for queue in body.mq_set]
    return body.consumer_group, body.client_id, queues
