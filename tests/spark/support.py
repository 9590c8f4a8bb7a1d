"""What the tests of the data source share: records, and a broker that is only a table."""

from __future__ import annotations

import contextlib
import socketserver
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from sprocket.message import batch
from sprocket.message.queue import QueueId
from sprocket.message.record import Draft, Encoder, parse, topic_part
from sprocket.protocol.bodies import (
    BrokerData,
    Queue,
    QueueData,
    QueueRange,
    Route,
    TopicList,
    TopicStatsTable,
)
from sprocket.protocol.command import Command, Reply
from sprocket.protocol.connection import Connection
from sprocket.protocol.frame import encode_reply
from sprocket.protocol.requests.offset import (
    MaxOffset,
    MinOffset,
    OffsetReply,
    QueryOffset,
    SearchOffset,
    UpdateOffset,
)
from sprocket.protocol.requests.pull import PullMessage, PullReply
from sprocket.protocol.requests.route import RouteOfTopic, TopicNames
from sprocket.protocol.requests.send import SendBatch, SendMessageV2, SendReply
from sprocket.protocol.requests.topic import TopicStats

V4 = bytes([127, 0, 0, 1, 0, 0, 0x2A, 0x9F])
V6 = bytes(15) + b"\x01" + bytes([0, 0, 0x2A, 0x9F])
BORN_MS = 1_700_000_000_000


def record(
    offset: int = 0,
    *,
    body: bytes = b"body",
    properties: bytes = b"KEYS\x01k\x02TAGS\x01paid\x02",
    topic: str = "orders",
    **more: Any,
) -> bytes:
    """One record as a broker would store it."""
    draft = Draft(
        topic,
        more.get("queue_number", 0),
        body,
        properties,
        0,
        more.get("flag", 0),
        more.get("sys_flag", 0),
        more.get("born_ms", BORN_MS + offset),
        more.get("born_host", V4),
    )
    return Encoder(more.get("store_host", V4)).encode(
        draft,
        topic_part(topic.encode()),
        log_offset=more.get("log_offset", offset * 100),
        queue_offset=offset,
        stored_ms=more.get("stored_ms", BORN_MS + 1000 + offset),
    )


@dataclass
class Shelf:
    """One queue of the fake broker: records from `first` on, one at each offset or None."""

    records: list[bytes | None] = field(default_factory=list)
    first: int = 0

    @property
    def end(self) -> int:
        return self.first + len(self.records)


class FakeBroker:
    """Name server and broker in one, answering from a table.

    Attributes:
        shelves: the queues. A record that is None is a gap.
        count_max, bytes_max: what one pull gives at most, whatever is asked.
        fault: called with each request first; what it returns is answered instead. None goes on.
            `hang_up` cuts the connection.
        pulls: the pulls that came.
        committed: offsets of groups.
        asked: how many requests of each code came.
    """

    def __init__(self, shelves: Mapping[QueueId, Shelf]) -> None:
        self.shelves = dict(shelves)
        self.count_max = 32
        self.bytes_max = 256 * 1024
        self.fault: Callable[[Command], Reply | None] = lambda _: None
        self.pulls: list[PullMessage] = []
        self.committed: dict[tuple[str, QueueId], int | None] = {}
        #: How many messages each send had.
        self.requests: list[int] = []
        self.address = ""
        self.asked: Counter[int] = Counter()

    def answer(self, request: Command) -> Reply:
        self.asked[request.code] += 1
        found = self.fault(request)
        if found is not None:
            return found
        if request.code == RouteOfTopic.code:
            return self._route(request.fields["topic"])
        if request.code == TopicNames.code:
            names = sorted({queue.topic for queue in self.shelves})
            return Reply(body=TopicList(topic_list=names).encode())
        if request.code == UpdateOffset.code:
            asked = request.read(UpdateOffset)
            assert asked.bname is not None
            queue = QueueId(asked.topic, asked.bname, asked.queue_id)
            self.committed[asked.consumer_group, queue] = asked.commit_offset
            return Reply()
        if request.code == QueryOffset.code:
            queue = QueueId(
                request.fields["topic"], request.fields["bname"], int(request.fields["queueId"])
            )
            offset = self.committed.get((request.fields["consumerGroup"], queue))
            if offset is None:
                return Reply(code=22, remark="Not found, maybe this group consumer boot first")
            return Reply(OffsetReply(offset=offset))
        if request.code in (SendMessageV2.code, SendBatch.code):
            return self._store(request)
        if request.code == PullMessage.code:
            return self._pull(request.read(PullMessage))
        if request.code == TopicStats.code:
            return self._stats(request.fields["topic"])
        return self._offset(request)

    def _stats(self, topic: str) -> Reply:
        """The ends of all queues, as if one broker had them: their numbers must differ."""
        table = {}
        for queue, shelf in self.shelves.items():
            if queue.topic == topic:
                last = shelf.records[-1] if shelf.records else None
                table[Queue(broker_name=queue.broker, queue_id=queue.number, topic=topic)] = (
                    QueueRange(
                        last_update_timestamp=0 if last is None else parse(last).stored_ms,
                        max_offset=shelf.end,
                        min_offset=shelf.first,
                    )
                )
        return Reply(body=TopicStatsTable(offset_table=table).encode())

    def _route(self, topic: str) -> Reply:
        queues = [queue for queue in self.shelves if queue.topic == topic]
        if not queues:
            return Reply(code=17, remark=f"No topic route info of {topic}")
        names = sorted({queue.broker for queue in queues})
        route = Route(
            broker_datas=[
                BrokerData(broker_name=name, broker_addrs={0: self.address}, cluster="c")
                for name in names
            ],
            queue_datas=[
                QueueData(
                    broker_name=name,
                    perm=6,
                    read_queue_nums=sum(queue.broker == name for queue in queues),
                    write_queue_nums=sum(queue.broker == name for queue in queues),
                )
                for name in names
            ],
        )
        return Reply(body=route.encode())

    def _store(self, request: Command) -> Reply:
        asked = request.read(SendMessageV2)
        assert asked.bname is not None
        queue = QueueId(asked.topic, asked.bname, asked.queue_id)
        shelf = self.shelves[queue]
        first = shelf.end
        parts = [batch.BatchedMessage(asked.flag, request.body, asked.properties or "")]
        if request.code == SendBatch.code:
            parts = batch.decode(request.body)
        for part in parts:
            made = record(
                shelf.end,
                body=bytes(part.body),
                properties=part.properties.encode(),
                topic=asked.topic,
                flag=part.flag,
                sys_flag=asked.sys_flag,
                queue_number=asked.queue_id,
            )
            shelf.records.append(made)
        self.requests.append(len(parts))
        reply = SendReply(msg_id="", queue_id=asked.queue_id, queue_offset=first)
        return Reply(reply)

    def _offset(self, request: Command) -> Reply:
        if request.code == SearchOffset.code:
            asked = request.read(SearchOffset)
            shelf = self._shelf(asked.topic, asked.queue_id, asked.bname)
            offset = min(max(asked.timestamp - BORN_MS - 1000, shelf.first), shelf.end)
            return Reply(OffsetReply(offset=offset))
        shelf = self._shelf(
            request.fields["topic"], int(request.fields["queueId"]), request.fields["bname"]
        )
        if request.code == MinOffset.code:
            return Reply(OffsetReply(offset=shelf.first))
        assert request.code == MaxOffset.code, request
        return Reply(OffsetReply(offset=shelf.end))

    def _shelf(self, topic: str, number: int, broker: str | None) -> Shelf:
        for queue, shelf in self.shelves.items():
            if queue.topic == topic and queue.number == number and broker == queue.broker:
                return shelf
        raise AssertionError(f"no shelf {topic} {number}")

    def _pull(self, asked: PullMessage) -> Reply:
        self.pulls.append(asked)
        shelf = self._shelf(asked.topic, asked.queue_id, asked.bname)
        at = asked.queue_offset

        def told(code: int, remark: str, after: int, body: bytes = b"") -> Reply:
            header = PullReply(
                suggest_which_broker_id=0,
                next_begin_offset=after,
                min_offset=shelf.first,
                max_offset=shelf.end,
            )
            return Reply(header, body, code, remark)

        if at < shelf.first:
            return told(21, "OFFSET_TOO_SMALL", shelf.first)
        if at > shelf.end:
            return told(21, "OFFSET_OVERFLOW_BADLY", shelf.end)
        if at == shelf.end:
            return told(19, "OFFSET_OVERFLOW_ONE", shelf.end)
        taken = []
        while at < shelf.end and len(taken) < min(asked.max_msg_nums, self.count_max):
            one = shelf.records[at - shelf.first]
            at += 1
            if one is not None:
                taken.append(one)
        if not taken:
            return told(20, "NO_MATCHED_MESSAGE", at)
        return told(0, "FOUND", at, b"".join(taken))


hang_up = Reply(code=-1)


@contextlib.contextmanager
def serving(broker: FakeBroker, port: int = 0) -> Iterator[FakeBroker]:
    """The broker on a loopback port, each connection in a thread."""

    class Session(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            connection = Connection()
            with contextlib.suppress(OSError):
                while data := self.request.recv(65536):
                    for command in connection.receive(data):
                        reply = broker.answer(command)
                        if reply is hang_up:
                            return
                        parts = encode_reply(command, reply)
                        self.request.sendall(b"".join(bytes(part) for part in parts))

    class Server(socketserver.ThreadingTCPServer):
        allow_reuse_address = True
        daemon_threads = True

    with Server(("127.0.0.1", port), Session) as server:
        broker.address = f"127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield broker
        finally:
            server.shutdown()
            thread.join()
