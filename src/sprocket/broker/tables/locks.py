"""Requests of ordered consumers for leases on queues (41, 42). The rules are in `queue_locks`.

Only queues that this broker has are leased: each lease is kept and saved. Java leases any name. A
lease is saved before its client gets the reply. Times are the event loop's: a wall clock that jumps
must not end a lease while its holder still consumes.
Source: AdminBrokerProcessor.lockBatchMQ, unlockBatchMQ of RocketMQ 5.x.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from sprocket.base.deadline import loop_ms
from sprocket.base.errors import RemoteProtocolError, ServiceNotAvailable
from sprocket.broker.dispatch import Endpoints
from sprocket.broker.tables.queue_locks import QueueLocks
from sprocket.broker.tables.queue_mappings import QueueMappings
from sprocket.broker.tables.state import StateFile, once_saved
from sprocket.broker.tables.topics import Topics
from sprocket.clientcore.logical_queues import leader, logical_broker
from sprocket.message.queue import QueueId
from sprocket.message.topic import fault_of_group
from sprocket.protocol.bodies import LockBody, LockedBody, Queue
from sprocket.protocol.codes import RequestCode
from sprocket.protocol.command import Command, Reply
from sprocket.remoting.transport import Peer

#: Pause between two scans for expired leases, s.
_SCAN_SECONDS = 20.0
#: Pause between two saves while clients of an earlier start are waited for, s.
_RENEW_SECONDS = 1.0
#: Largest body of a request: its content is kept as long as the leases.
_BODY_BYTES_MAX = 1 << 20
#: Longest client id, in characters, as long as each of its leases.
_CLIENT_ID_MAX = 1024


class LockTable:
    """The leases as a table of a state file; at a slave, those of its master.

    A slave gives no leases, and those that it copies do not expire: their holders renew them at
    the master. When it becomes a master, their time counts from then on, as after a start. So it
    does while the slave stands for its master: it gives leases then, and what it has copied is kept
    for the time after that.
    """

    def __init__(self, locks: QueueLocks) -> None:
        self._locks = locks
        #: Whether a slave stands for its master, so that the leases are its own.
        self._is_acting = False
        #: The master's leases: queues by group and client id; None at a master.
        self._copied: dict[str, dict[str, list[str]]] | None = None

    def to_json(self) -> dict[str, Any]:
        """The table as JSON for its file."""
        if self._copied is not None and not self._is_acting:
            return {"lockTable": dict(self._copied), "unheardLeftMs": {}}
        return self._locks.to_json(loop_ms())

    def load(self, state: Mapping[str, Any]) -> None:
        """Loads the table from the JSON of its file; the leases' time counts from now.

        Raises:
            ValueError: the JSON has another form.
        """
        self._locks.load(state, loop_ms())

    def begin_copy(self) -> None:
        """Keeps the leases as a slave does, until `end_copy`."""
        if self._copied is None:
            self._copied = {name: self._locks.held_in(name) for name in self._locks.groups()}
            self._locks.clear()

    def copy(self, group: str, leases: Mapping[str, list[str]]) -> None:
        """Makes a group's leases as the master has them."""
        assert self._copied is not None, "`begin_copy` comes first"
        if leases:
            self._copied[group] = dict(leases)
        else:
            self._copied.pop(group, None)

    def copied(self) -> list[str]:
        """The groups whose leases were copied."""
        return list(self._copied or ())

    def end_copy(self) -> None:
        """Takes over the copied leases: their holders may be dead, or come here to renew them."""
        if self._copied is not None:
            self.act()
            self._copied, self._is_acting = None, False

    @property
    def is_own(self) -> bool:
        """Whether leases are given here: at a master, and at a slave that stands for it."""
        return self._copied is None or self._is_acting

    def act(self) -> None:
        """Takes over the copied leases while the master is away."""
        if not self.is_own:
            state, self._is_acting = self.to_json(), True
            self._locks.load(state, loop_ms())

    def end_act(self) -> None:
        """Goes back to the copied leases: the master gives them again."""
        if self._is_acting:
            self._is_acting = False
            self._locks.clear()

    def held(self) -> dict[str, dict[str, list[str]]]:
        """All leases that are given here, as in the file."""
        return {group: self._locks.held_in(group) for group in self._locks.groups()}

    def take_over(self, leases: Mapping[str, Mapping[str, list[str]]]) -> None:
        """Adds what a slave has leased in this master's place; who holds a queue there holds it."""
        table, left = self.held(), dict(self._locks.to_json(loop_ms())["unheardLeftMs"])
        for group, clients in leases.items():
            taken = {text for texts in clients.values() for text in texts}
            known = table.setdefault(group, {})
            for client, texts in list(known.items()):
                known[client] = [text for text in texts if text not in taken]
            for client, texts in clients.items():
                known[client] = [*known.get(client, ()), *texts]
                left.pop(client, None)
        self._locks.clear()
        self._locks.load({"lockTable": table, "unheardLeftMs": left}, loop_ms())

    async def run(self, file: StateFile) -> None:
        """Removes expired leases periodically, until cancelled.

        Args:
            file: is saved more often while it has to tell how long clients are waited for.
        """
        while True:
            await asyncio.sleep(_RENEW_SECONDS if self._locks.has_silent else _SCAN_SECONDS)
            if self._locks.has_silent:
                file.changed()
            for _ in self._locks.expiring(loop_ms()):
                await asyncio.sleep(0)


class LockRequests:
    """Answers requests to lock and unlock queues.

    Args:
        may_lease: whether leases are given here now.
    """

    def __init__(
        self,
        locks: QueueLocks,
        file: StateFile,
        *,
        topics: Topics,
        mappings: QueueMappings,
        broker: str,
        may_lease: Callable[[], bool],
    ) -> None:
        self._may_lease = may_lease
        self._locks = locks
        self._topics, self._mappings = topics, mappings
        self._broker = broker
        self._file = file
        #: Client ids that hold leases, by connection whose end is watched.
        self._watched: dict[Peer, set[str]] = {}

    def endpoints(self) -> Endpoints:
        """The endpoints, by request code."""
        return once_saved(
            {RequestCode.LOCK_BATCH_MQ: self.lock, RequestCode.UNLOCK_BATCH_MQ: self.unlock},
            self._file,
        )

    def lock(self, command: Command, peer: Peer) -> Reply:
        """Takes or renews leases; the reply lists the queues that the client holds now.

        Raises:
            ServiceNotAvailable: this is a slave that stands for nobody. An error, since a client
                that holds nothing stops at once, and one without an answer trusts its lease.
        """
        group, client_id, asked = _read(command)
        if not self._may_lease():
            raise ServiceNotAvailable(f"queues of {self._broker} are leased by its master")
        queues = [queue for queue in asked if self._has(queue)]
        held = self._locks.lock(group, client_id, queues=queues, now_ms=loop_ms())
        if held:
            self._watch(peer, client_id)
        locked = [
            Queue(broker_name=queue.broker, queue_id=queue.number, topic=queue.topic)
            for queue in held
        ]
        write_leases(self._locks, self._file)
        return Reply(body=LockedBody(locked=locked).encode())

    def unlock(self, command: Command, peer: Peer) -> Reply:
        """Releases leases; those of other clients are unchanged."""
        self._locks.unlock(*_read(command))
        write_leases(self._locks, self._file)
        return Reply()

    def _has(self, queue: QueueId) -> bool:
        topic = self._topics.get(queue.topic)
        if topic is None:
            return False
        if queue.broker != self._broker:
            detail = self._mappings.get(queue.topic)
            if detail is None or queue.broker != logical_broker(detail.scope):
                return False
            return leader(detail, queue.number) is not None
        return 0 <= queue.number < max(topic.read_queue_nums, topic.write_queue_nums)

    def _watch(self, peer: Peer, client_id: str) -> None:
        if peer not in self._watched:
            self._watched[peer] = set()
            peer.on_close(self._closed)
        self._watched[peer].add(client_id)

    def _closed(self, peer: Peer) -> None:
        for client_id in self._watched.pop(peer, ()):
            self._locks.part(client_id)


def write_leases(locks: QueueLocks, file: StateFile) -> None:
    """Saves the leases if one of them has changed."""
    if locks.is_changed:
        locks.is_changed = False
        file.changed()


def _read(command: Command) -> tuple[str, str, list[QueueId]]:
    if len(command.body) > _BODY_BYTES_MAX:
        raise RemoteProtocolError(f"a lock has at most {_BODY_BYTES_MAX} bytes")
    body = LockBody.of_request(command.body)
    if not body.consumer_group or not body.client_id:
        raise RemoteProtocolError("a lock needs consumerGroup and clientId")
    if fault := fault_of_group(body.consumer_group):
        raise RemoteProtocolError(fault)
    if len(body.client_id) > _CLIENT_ID_MAX:
        raise RemoteProtocolError(f"a client id has at most {_CLIENT_ID_MAX} characters")
    queues = [QueueId(queue.topic, queue.broker_name, queue.queue_id) for queue in body.mq_set]
    return body.consumer_group, body.client_id, queues
