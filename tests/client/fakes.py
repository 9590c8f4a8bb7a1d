"""A name server and broker in one, as small as clients allow, that tests can make misbehave.

It keeps messages in lists and answers by the same rules as a broker where clients depend on them.
`refuse` makes it fail on purpose; `asked` tells what it was asked. For consumption against a real
broker there are the tests of whole clusters.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from sprocket.base.deadline import Deadline
from sprocket.client.base.world import ClientEnvironment
from sprocket.message import batch, properties
from sprocket.message.compression import Compression, compress
from sprocket.message.hosts import pack
from sprocket.message.message import StoredMessage
from sprocket.message.queue import QueueId
from sprocket.message.record import Draft, Encoder, decode, topic_part
from sprocket.protocol.bodies import (
    BrokerData,
    GroupMemberList,
    HeartbeatBody,
    LockBody,
    LockedBody,
    QueueData,
    Route,
)
from sprocket.protocol.command import Command, Header, Reply
from sprocket.protocol.requests.client import (
    GroupMembers,
    Heartbeat,
    HeartbeatReply,
    IdsChanged,
    Unregister,
)
from sprocket.protocol.requests.lock import LockQueues, UnlockQueues
from sprocket.protocol.requests.offset import (
    MaxOffset,
    MinOffset,
    OffsetReply,
    QueryOffset,
    SearchOffset,
    UpdateOffset,
)
from sprocket.protocol.requests.pull import COMMIT_OFFSET, SUSPEND, PullMessage, PullReply
from sprocket.protocol.requests.route import RouteOfTopic
from sprocket.protocol.requests.send import SendBack, SendBatch, SendMessageV2, SendReply
from sprocket.remoting.endpoints import one_by_one
from sprocket.remoting.server import Server
from sprocket.remoting.transport import Peer
from sprocket.testing.clock import LoopClock
from sprocket.testing.entropy import SeededEntropy
from sprocket.testing.loop import simulate
from sprocket.testing.network import Network

T = TypeVar("T")

#: (request, connection) to a code with which it is refused, or None.
Refusal = Callable[[Command, Peer], int | None]


def world(name: str = "client", host: str = "10.0.0.9") -> ClientEnvironment:
    """A client's world in a simulation."""
    return ClientEnvironment(LoopClock(), SeededEntropy(name), host, 1)


def play(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Runs a test in virtual time."""

    async def on_network(network: Network) -> T:
        return await main()

    return simulate(on_network)


async def until(condition: Callable[[], object], seconds: float = 60.0) -> None:
    """Lets (virtual) time pass until something is the case."""
    for _ in range(int(seconds * 100)):
        if condition():
            return
        await asyncio.sleep(0.01)
    raise AssertionError(f"still not so after {seconds} s")


@dataclass
class FakeQueue:
    """One queue: records by offset, the first offset, and who waits for more."""

    first: int = 0
    records: list[bytes] = field(default_factory=list)
    stored_ms: list[int] = field(default_factory=list)
    arrived: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def end(self) -> int:
        return self.first + len(self.records)


class FakeBroker:
    """`async with FakeBroker({"orders": 4}) as broker: broker.address`."""

    def __init__(self, topics: dict[str, int] | None = None, name: str = "broker-a") -> None:
        self.name = name
        self.topics = dict(topics or {})
        self.template_queues: int | None = None
        self.queues: dict[tuple[str, int], FakeQueue] = {}
        self.committed: dict[tuple[str, str, int], int] = {}
        #: By group, client ids of its members and the last heartbeat's word on each.
        self.members: dict[str, list[str]] = {}
        self.heartbeats: list[HeartbeatBody] = []
        self.asked: list[Command] = []
        self.refuse: Refusal = lambda command, peer: None
        #: Answers to further requests, by code.
        self.more: dict[int, Callable[[Command, Peer], Any]] = {}
        #: By topic and number, who has the lease and until when.
        self.leases: dict[tuple[str, int], tuple[str, float]] = {}
        #: Further brokers that routes name: name to address.
        self.others: dict[str, str] = {}
        self._by_log_offset: dict[int, StoredMessage] = {}
        self._log_end = 0
        self._server = Server(one_by_one(self._answer), host="127.0.0.1")
        self._clock = LoopClock()

    async def __aenter__(self) -> FakeBroker:
        await self._server.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> None:
        await self._server.__aexit__(None, None, None)

    @property
    def address(self) -> str:
        return self._server.address

    @property
    def peers(self) -> list[Peer]:
        return self._server.peers

    def queue(self, topic: str, number: int = 0) -> FakeQueue:
        return self.queues.setdefault((topic, number), FakeQueue())

    def count(self, header: type[Header]) -> int:
        """How often something was asked."""
        return sum(1 for command in self.asked if command.code == header.code)

    def last(self, header: type[Header]) -> Command:
        """The last request of a kind."""
        return [command for command in self.asked if command.code == header.code][-1]

    def put(self, topic: str, number: int = 0, **texts: str) -> StoredMessage:
        """Stores a message past all clients; keyword `body`, other ones are properties."""
        body = texts.pop("body", "x").encode()
        draft = Draft(
            topic, number, body, properties.encode(texts).encode(), 0, 0, 0, 0, pack("1.1.1.1:1")
        )
        return self._store(draft)

    def put_compressed(self, topic: str, opened_bytes: int, number: int = 0) -> StoredMessage:
        """Stores a message whose body opens to so many zeros."""
        kind = Compression.ZSTD
        body = compress(bytes(opened_bytes), kind)
        host = pack("1.1.1.1:1")
        return self._store(Draft(topic, number, body, b"", 0, 0, kind.sys_flag, 0, host))

    def bodies(self, topic: str, number: int = 0) -> list[bytes]:
        """What a queue holds."""
        return [decode(record).body for record in self.queue(topic, number).records]

    def _store(self, draft: Draft) -> StoredMessage:
        queue = self.queue(draft.topic, draft.queue_number)
        now_ms = self._clock.now_ms()
        record = Encoder(pack("10.0.0.1:10911")).encode(
            draft,
            topic_part(draft.topic.encode()),
            log_offset=self._log_end,
            queue_offset=queue.end,
            stored_ms=now_ms,
        )
        self._log_end += len(record)
        queue.records.append(record)
        queue.stored_ms.append(now_ms)
        queue.arrived.set()
        queue.arrived = asyncio.Event()
        message = decode(record, 0, self.name)
        self._by_log_offset[message.log_offset] = message
        return message

    # Answers.

    def _answer(self, command: Command, peer: Peer) -> Any:
        self.asked.append(command)
        code = self.refuse(command, peer)
        if code is not None:
            return Reply(code=code, remark="refused by the test")
        answers: dict[int, Callable[[Command, Peer], Any]] = {
            RouteOfTopic.code: self._route,
            SendMessageV2.code: self._send,
            SendBatch.code: self._send,
            SendBack.code: self._send_back,
            PullMessage.code: self._pull,
            Heartbeat.code: self._heartbeat,
            Unregister.code: self._unregister,
            GroupMembers.code: self._group_members,
            QueryOffset.code: self._query,
            UpdateOffset.code: self._update,
            MaxOffset.code: self._max,
            MinOffset.code: self._min,
            SearchOffset.code: self._search,
            LockQueues.code: self._lock,
            UnlockQueues.code: self._unlock,
            **self.more,
        }
        return answers[command.code](command, peer)

    def _route(self, command: Command, peer: Peer) -> Reply:
        topic = command.read(RouteOfTopic).topic or ""
        count = self.template_queues if topic == "TBW102" else self.topics.get(topic)
        if count is None:
            return Reply(code=17, remark=f"no route of {topic}")
        names = {**self.others, self.name: self.address}
        route = Route(
            broker_datas=[
                BrokerData(broker_addrs={0: address}, broker_name=name)
                for name, address in names.items()
            ],
            queue_datas=[
                QueueData(broker_name=name, perm=6, read_queue_nums=count, write_queue_nums=count)
                for name in names
            ],
        )
        return Reply(body=route.encode())

    def _send(self, command: Command, peer: Peer) -> Reply:
        header = command.read(SendMessageV2)
        self.topics.setdefault(header.topic, header.default_topic_queue_nums)
        parts = [batch.BatchedMessage(header.flag, bytes(command.body), header.properties or "")]
        if header.batch:
            parts = batch.decode(bytes(command.body))
        stored = [
            self._store(
                Draft(
                    header.topic,
                    header.queue_id,
                    bytes(part.body),
                    part.properties.encode(),
                    0,
                    part.flag,
                    header.sys_flag,
                    header.born_timestamp,
                    pack("1.1.1.1:1"),
                    header.reconsume_times,
                )
            )
            for part in parts
        ]
        ids = ",".join(f"{message.log_offset:032X}" for message in stored)
        return Reply(
            SendReply(msg_id=ids, queue_id=header.queue_id, queue_offset=stored[0].queue_offset)
        )

    def _send_back(self, command: Command, peer: Peer) -> Reply:
        header = command.read(SendBack)
        message = self._by_log_offset[header.offset]
        topic = f"%RETRY%{header.group}"
        self.topics.setdefault(topic, 1)
        texts = {"RETRY_TOPIC": message.queue.topic, **message.properties}
        self._store(
            Draft(
                topic,
                0,
                message.body,
                properties.encode(texts).encode(),
                0,
                message.flag,
                message.sys_flag,
                message.born_ms,
                pack("1.1.1.1:1"),
                message.reconsume_times + 1,
            )
        )
        return Reply()

    async def _pull(self, command: Command, peer: Peer) -> Reply:
        header = command.read(PullMessage)
        queue = self.queue(header.topic, header.queue_id)
        if header.sys_flag & COMMIT_OFFSET:
            key = (header.consumer_group, header.topic, header.queue_id)
            self.committed[key] = header.commit_offset
        deadline = Deadline.after_ms(header.suspend_timeout_millis)
        while header.queue_offset == queue.end and header.sys_flag & SUSPEND and deadline.left():
            try:
                async with asyncio.timeout(deadline.left()):
                    await queue.arrived.wait()
            except TimeoutError:
                break
        at = header.queue_offset - queue.first
        if at < 0 or header.queue_offset > queue.end:
            return self._pulled(queue, 21, queue.first if at < 0 else queue.end)
        found = queue.records[at : at + header.max_msg_nums]
        if not found:
            return self._pulled(queue, 19, header.queue_offset)
        return self._pulled(queue, 0, header.queue_offset + len(found), b"".join(found))

    def _pulled(self, queue: FakeQueue, code: int, next_offset: int, body: bytes = b"") -> Reply:
        header = PullReply(
            suggest_which_broker_id=0,
            next_begin_offset=next_offset,
            min_offset=queue.first,
            max_offset=queue.end,
        )
        return Reply(header, body, code, "the test's word")

    def _heartbeat(self, command: Command, peer: Peer) -> Reply:
        body = HeartbeatBody.decode(command.body)
        self.heartbeats.append(body)
        for consumer in body.consumers:
            members = self.members.setdefault(consumer.group_name, [])
            self.topics.setdefault(f"%RETRY%{consumer.group_name}", 1)
            if body.client_id not in members:
                members.append(body.client_id)
                self._notify(consumer.group_name)
                peer.on_close(partial(self._closed, consumer.group_name, body.client_id))
        return Reply(HeartbeatReply())

    def _notify(self, group: str) -> None:
        for peer in self.peers:
            peer.send_oneway(IdsChanged(consumer_group=group))

    def _closed(self, group: str, client_id: str, peer: Peer) -> None:
        self._gone(group, client_id)

    def _gone(self, group: str, client_id: str) -> None:
        if client_id in self.members.get(group, []):
            self.members[group].remove(client_id)
            self._notify(group)

    def _unregister(self, command: Command, peer: Peer) -> Reply:
        header = command.read(Unregister)
        if header.consumer_group:
            self._gone(header.consumer_group, header.client_id)
        return Reply()

    def _group_members(self, command: Command, peer: Peer) -> Reply:
        members = self.members.get(command.read(GroupMembers).consumer_group)
        if not members:
            return Reply(code=1, remark="no consumer for this group")
        return Reply(body=GroupMemberList(consumer_id_list=members).encode())

    def _query(self, command: Command, peer: Peer) -> Reply:
        header = command.read(QueryOffset)
        found = self.committed.get((header.consumer_group, header.topic, header.queue_id))
        if found is None:
            if header.set_zero_if_not_found is not False:
                return Reply(OffsetReply(offset=0))
            return Reply(code=22, remark="Not found")
        return Reply(OffsetReply(offset=found))

    def _update(self, command: Command, peer: Peer) -> Reply:
        header = command.read(UpdateOffset)
        assert header.commit_offset is not None
        key = (header.consumer_group, header.topic, header.queue_id)
        self.committed[key] = header.commit_offset
        return Reply()

    def _max(self, command: Command, peer: Peer) -> Reply:
        header = command.read(MaxOffset)
        return Reply(OffsetReply(offset=self.queue(header.topic, header.queue_id).end))

    def _min(self, command: Command, peer: Peer) -> Reply:
        header = command.read(MinOffset)
        return Reply(OffsetReply(offset=self.queue(header.topic, header.queue_id).first))

    def _search(self, command: Command, peer: Peer) -> Reply:
        header = command.read(SearchOffset)
        queue = self.queue(header.topic, header.queue_id)
        older = sum(1 for stored_ms in queue.stored_ms if stored_ms < header.timestamp)
        return Reply(OffsetReply(offset=queue.first + older))

    def _lock(self, command: Command, peer: Peer) -> Reply:
        body = LockBody.decode(command.body)
        now = asyncio.get_running_loop().time()
        granted = []
        for queue in body.mq_set:
            key = (queue.topic, queue.queue_id)
            holder, until = self.leases.get(key, ("", 0.0))
            if holder in ("", body.client_id) or until < now:
                self.leases[key] = (body.client_id or "", now + 60)
                granted.append(queue)
        return Reply(body=LockedBody(locked=granted).encode())

    def _unlock(self, command: Command, peer: Peer) -> Reply:
        body = LockBody.decode(command.body)
        for queue in body.mq_set:
            key = (queue.topic, queue.queue_id)
            if self.leases.get(key, ("", 0.0))[0] == body.client_id:
                del self.leases[key]
        return Reply()


def queue_of(topic: str, number: int = 0, broker: str = "broker-a") -> QueueId:
    """A queue of a `FakeBroker`."""
    return QueueId(topic, broker, number)
