"""One store, opened in turn by our node and by the Java broker: each has all that the other wrote.

Every story has three parts: one kind begins the store and ends, in order or killed; the other
opens it, finds everything, adds to it and ends in the same way; the first opens it again. Files
are small, so that log, consume queues and index have several.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from sprocket.broker.tables.topics import new_topic
from sprocket.message.compression import Compression, compress
from sprocket.message.hashing import tag_code
from sprocket.message.hosts import pack
from sprocket.message.message import StoredMessage
from sprocket.message.properties import encode
from sprocket.message.record import COMMITTED, PREPARED, ROLLED_BACK, Draft, decode
from sprocket.runtime.clock import SystemClock
from sprocket.runtime.disk import SystemDisk
from sprocket.store.config import StoreConfig
from sprocket.store.inspection.inspected import InspectedStore
from sprocket.store.inspection.repair import FILLER_TOPIC, Repair
from sprocket.store.state.snapshot import Snapshot
from sprocket.store.store import Store
from sprocket.store.views.tag_codes import TAGS_ONLY
from tests.compat import moving
from tests.compat.javaland import (
    JavaCallError,
    JavaDriver,
    Json,
    free_broker_port,
    wait_until,
)
from tests.compat.moving import Javas, Ours, Stories, stories_under_way
from tests.support import run

pytestmark = pytest.mark.java

LOG_FILE_BYTES = 128 * 1024
QUEUE_FILE_BYTES = 40 * 20
INDEX_SLOTS, INDEX_ENTRIES = 100, 400

QUEUES = {"Plain": 4, "Made": 6, "Later": 1}
#: Level 3: long enough for it to come due under another server.
DELAY_LEVEL = 3


def ours_on(work: Path, store: Path, port: int) -> Ours:
    """Our node with small files."""
    settings = {
        "store.log_file_bytes": LOG_FILE_BYTES,
        "store.queue_file_bytes": QUEUE_FILE_BYTES,
        "store.index_slots": INDEX_SLOTS,
        "store.index_entries": INDEX_ENTRIES,
        "broker.offset_save_ms": 100,
    }
    return Ours(work, store, port, settings)


def javas_on(work: Path, store: Path, port: int, more: Mapping[str, str] | None = None) -> Javas:
    """Java's broker with files of the same sizes."""
    settings = {
        "mappedFileSizeCommitLog": LOG_FILE_BYTES,
        "mappedFileSizeConsumeQueue": QUEUE_FILE_BYTES,
        "maxHashSlotNum": INDEX_SLOTS,
        "maxIndexNum": INDEX_ENTRIES,
        "flushConsumerOffsetInterval": 100,
        **(more or {}),
    }
    return Javas(work, store, port, settings)


class Visitor(moving.Visitor):
    """What Java clients write into a store during one part of a story, and find in it later."""

    def write(self) -> None:
        """Adds to every topic."""
        if self.part == 0:
            for topic, queues in QUEUES.items():
                self.call("query.createTopic", topic=topic, queues=queues)
                wait_until(lambda topic=topic: self.knows(topic))
        bytes_of = random.Random(self.part).randbytes
        messages = [
            {
                "body": bytes_of(300 + number),
                "queueId": number % 4,
                "tag": "AB"[number % 2],
                "keys": [f"k{self.part}-{number}"],
                "properties": {"n": str(number), "größe": "日本"},
            }
            for number in range(300)
        ]
        results = self.call("producer.sendMany", topic="Plain", messages=messages)["results"]
        assert {result["status"] for result in results} == {"SEND_OK"}
        batch = [{"text": f"b{number}", "keys": "batched"} for number in range(5)]
        results += [
            self.call("producer.sendBatch", topic="Made", messages=batch, queueId=5),
            self.call("producer.send", topic="Made", body=bytes_of(30_000), queueId=0),
            self.call("producer.send", topic="Made", body=b"compressed " * 1000, queueId=1),
        ]
        ends = {(each["topic"], each["queueId"]): each["queueOffset"] + 1 for each in results}
        ends["Made", 5] += len(batch) - 1
        for (topic, queue), end in ends.items():
            self.wait_queued(topic, queue, end)
        self.call(
            "producer.send",
            topic="Later",
            text=f"delayed in part {self.part}",
            delayLevel=DELAY_LEVEL,
        )

    def commit(self) -> None:
        """Moves the group on; Java makes a group when it pulls, not when it commits."""
        for queue in range(4):
            offset = self.part * 10 + queue + 1
            self.call("pull.updateOffset", topic="Plain", queueId=queue, offset=offset)
            wait_until(lambda queue=queue, offset=offset: self.committed(queue) == offset)

    def committed(self, queue: int) -> int:
        offset: int = self.call("pull.fetchOffset", topic="Plain", queueId=queue)["offset"]
        return offset

    def knows(self, topic: str) -> bool:
        try:
            return len(self.call("producer.queues", topic=topic)["queues"]) == QUEUES[topic]
        except JavaCallError:
            return False

    def read(self) -> dict[str, list[Json]]:
        """All messages of all queues of the two topics that only `write` changes."""
        return {
            f"{topic}-{queue}": self.read_queue(topic, queue)
            for topic in ("Plain", "Made")
            for queue in range(QUEUES[topic])
        }

    def read_queue(self, topic: str, queue: int) -> list[Json]:
        found: list[Json] = []
        while True:
            pulled = self.call("pull.pull", topic=topic, queueId=queue, offset=len(found))
            if pulled["status"] != "FOUND":
                assert pulled["status"] == "NO_NEW_MSG"
                assert pulled["maxOffset"] == len(found)
                return found
            found += pulled["messages"]

    def find(self, key: str) -> list[int]:
        """Numbers of the messages that a key leads to."""
        try:
            found = self.call("query.byKey", topic="Plain", key=key)["messages"]
        except JavaCallError:
            return []
        return [int(message["properties"]["n"]) for message in found]

    def due(self) -> list[str]:
        """Delayed messages that have come."""
        return [message["body"].decode() for message in self.read_queue("Later", 0)]


def has_saved(store: Path, part: int) -> bool:
    """Whether the offsets of a part are in their file."""
    path = store / "config" / "consumerOffset.json"
    text = "".join(path.read_text().split()) if path.exists() else ""
    return '"Plain@reader":{' + ",".join(f"{q}:{part * 10 + q + 1}" for q in range(4)) + "}" in text


def check_everything(visitor: Visitor, before: dict[str, list[Json]]) -> None:
    """What the part before read is all there, found in every way, and goes on."""
    for topic in ("Plain", "Made"):
        wait_until(lambda topic=topic: visitor.knows(topic))
    for place, messages in before.items():
        topic, _, queue = place.partition("-")
        visitor.wait_queued(topic, int(queue), len(messages))
    found = visitor.read()
    for place, messages in before.items():
        assert found[place] == messages, place
    last = visitor.part - 1
    assert [visitor.committed(queue) for queue in range(4)] == [last * 10 + q + 1 for q in range(4)]
    for part in range(visitor.part):
        for number in (0, 150, 299):
            wait_until(lambda n=number, p=part: visitor.find(f"k{p}-{n}") == [n])
    view = found["Plain-2"][7]
    for message_id in (view["offsetMsgId"], view["msgId"]):
        viewed = visitor.call("query.view", topic="Plain", id=message_id)["message"]
        assert viewed["sha256"] == view["sha256"]
    times = [message["storeTimestamp"] for message in found["Plain-0"]]
    at = times[len(times) // 2]
    searched = visitor.call("query.search", topic="Plain", queueId=0, timestamp=at)
    assert searched["offset"] == times.index(at)
    sent = visitor.call("producer.send", topic="Made", text="goes on", queueId=3)
    assert sent["queueOffset"] == len(before["Made-3"])


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[JavaDriver]:
    with JavaDriver(work=tmp_path_factory.mktemp("stores-driver")) as running:
        yield running


@pytest.fixture(scope="module")
def stories(
    request: pytest.FixtureRequest, driver: JavaDriver, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Stories]:
    with stories_under_way(request.session, tmp_path_factory, partial(tell, driver)) as told:
        yield told


@pytest.mark.parametrize("end", ["stop", "kill"])
@pytest.mark.parametrize("first", ["ours", "java"])
def test_a_store_goes_from_hand_to_hand(stories: Stories, first: str, end: str) -> None:
    stories[first, end].result()


def tell(driver: JavaDriver, work: Path, first: str, end: str) -> None:
    """One story from beginning to end."""
    store, port = work / "store", free_broker_port()
    ours, javas = ours_on(work, store, port), javas_on(work, store, port)
    hosts: list[Ours | Javas] = [ours, javas, ours] if first == "ours" else [javas, ours, javas]
    found: dict[str, list[Json]] = {}
    try:
        for part, host in enumerate(hosts):
            host.start()
            visitor = Visitor(driver, host.names, part)
            if part:
                check_everything(visitor, found)
            if part < 2:
                visitor.write()
                found = visitor.read()
                visitor.commit()
                wait_until(partial(has_saved, store, part))
            else:
                check_delayed(visitor, is_exact=end == "stop")
            visitor.leave()
            if part < 2:
                getattr(host, end)()
    finally:
        ours.kill()
        javas.close()


def check_delayed(visitor: Visitor, *, is_exact: bool) -> None:
    """Each came once; or more than once, if a kill took the progress made since the last save."""
    expected = [f"delayed in part {part}" for part in range(visitor.part)]
    wait_until(lambda: set(visitor.due()) == set(expected))
    if is_exact:
        assert visitor.due() == expected


#: Topics that our store is filled with, and how many queues they have.
EVERY = {"Every": 3, "%RETRY%every": 1, "%DLQ%every": 1}
V6_HOST, V4_HOST = pack("[2001:db8::7]:4000"), pack("10.0.0.7:4000")


def every_kind() -> Iterator[Draft]:
    """Messages in every form that a record can have."""
    forms: list[dict[str, Any]] = [
        {"properties": {"TAGS": "a", "KEYS": "k1 k2", "UNIQ_KEY": "F" * 32, "größe": "日本"}},
        {"properties": {"x": "y" * 30_000}},
        {"properties": {"KEYS": "v6"}, "born_host": V6_HOST},
        {"properties": {"PGROUP": "p", "TRAN_MSG": "true"}, "sys_flag": COMMITTED},
        {"properties": {"PGROUP": "p"}, "sys_flag": PREPARED},
        {"properties": {"PGROUP": "p"}, "sys_flag": ROLLED_BACK},
        *({"compression": kind, "properties": {"kind": kind.name}} for kind in Compression),
        {"topic": "%RETRY%every", "properties": {"RETRY_TOPIC": "Every"}, "reconsume_times": 2},
        {"topic": "%DLQ%every", "properties": {"RETRY_TOPIC": "Every"}, "reconsume_times": 17},
    ]
    for number in range(30):
        for form in forms:
            changes = dict(form)
            properties: dict[str, str] = changes.pop("properties")
            body = changes.pop("body", b"%d " % number * 60)
            kind: Compression | None = changes.pop("compression", None)
            flag = changes.pop("sys_flag", 0)
            topic = changes.pop("topic", "Every")
            yield Draft(
                topic=topic,
                queue_number=number % EVERY[topic],
                body=body if kind is None else compress(body, kind),
                properties=encode(properties).encode(),
                tag_code=tag_code(properties.get("TAGS")),
                flag=number,
                sys_flag=flag | (0 if kind is None else kind.sys_flag),
                born_ms=1_700_000_000_000 + number,
                born_host=changes.pop("born_host", V4_HOST),
                keys=properties.get("KEYS", ""),
                unique_key=properties.get("UNIQ_KEY", ""),
                **changes,
            )


async def fill(store: Path, paths: tuple[str, ...], *, is_killed: bool) -> list[StoredMessage]:
    """Writes a store, from two addresses; all that it must give, in the order of the log."""
    config = StoreConfig(
        log_file_bytes=LOG_FILE_BYTES,
        queue_file_bytes=QUEUE_FILE_BYTES,
        index_slots=INDEX_SLOTS,
        index_entries=INDEX_ENTRIES,
        log_paths=paths,
    )
    written: list[StoredMessage] = []
    for host in ("127.0.0.1:10911", "[::1]:10911"):
        opened = await Store.open(
            disk=SystemDisk(),
            clock=SystemClock(),
            root=str(store),
            config=config,
            store_host=pack(host),
            tag_codes=TAGS_ONLY,
        )
        places = [(opened.append(draft), draft) for draft in every_kind()]
        written += [
            decode(bytes(opened.lookup(place.log_offset)), opens_body=True)
            for place, draft in places
            if not draft.sys_flag & PREPARED
        ]
        await opened.sync()
        await opened.close()
    if is_killed:
        (store / "abort").touch()
    table = {name: msgspec.to_builtins(new_topic(name, queues=n)) for name, n in EVERY.items()}
    Snapshot(SystemDisk(), f"{store}/config/topics.json", begins_anew=True).save(
        {
            "dataVersion": {"counter": 1, "stateVersion": 0, "timestamp": 1},
            "topicConfigTable": table,
        }
    )
    return written


async def break_and_pass_over(store: Path, paths: tuple[str, ...], broken: StoredMessage) -> None:
    """Damages a message, and has the damage passed over."""
    start = broken.log_offset - broken.log_offset % LOG_FILE_BYTES
    (path,) = [p for p in (Path(each) / f"{start:020d}" for each in paths) if p.exists()]
    raw = bytearray(path.read_bytes())
    raw[broken.log_offset - start + 4] ^= 1
    path.write_bytes(raw)
    seen = InspectedStore(SystemDisk(), str(store), StoreConfig(log_paths=paths))
    for step in Repair(seen, 0).skip_damaged():
        await step.do()


@pytest.mark.parametrize("is_killed", [False, True], ids=["stopped", "killed"])
def test_java_finds_every_kind_of_message_in_our_store_on_two_disks_also_mended(
    driver: JavaDriver, tmp_path: Path, is_killed: bool
) -> None:
    store = tmp_path / "store"
    paths = (str(store / "commitlog"), str(tmp_path / "other" / "commitlog"))
    written = run(fill(store, paths, is_killed=is_killed))
    broken = written[len(written) // 3]
    run(break_and_pass_over(store, paths, broken))
    settings = {"storePathCommitLog": ",".join(paths)}
    javas = javas_on(tmp_path, store, free_broker_port(), settings)
    try:
        javas.start()
        visitor = Visitor(driver, javas.names, 7)
        for topic, queues in EVERY.items():
            for queue in range(queues):
                expected = [
                    message
                    for message in written
                    if (message.topic, message.queue.number) == (topic, queue)
                    and message.log_offset != broken.log_offset
                ]
                wait_until(
                    lambda t=topic, q=queue, e=expected: len(all_of(visitor, t, q)) == len(e)
                )
                for message, found in zip(expected, all_of(visitor, topic, queue), strict=True):
                    check_same(message, found)
        visitor.leave()
    finally:
        javas.close()


def all_of(visitor: Visitor, topic: str, queue: int) -> list[Json]:
    """All messages of a queue, without what stands in for damage."""
    found: list[Json] = []
    offset = 0
    while True:
        pulled = visitor.call("pull.pull", topic=topic, queueId=queue, offset=offset)
        found += [each for each in pulled["messages"] if each["topic"] != FILLER_TOPIC]
        if pulled["nextOffset"] <= offset:
            return found
        offset = pulled["nextOffset"]


def check_same(message: StoredMessage, found: Json) -> None:
    assert found["queueOffset"] == message.queue_offset
    assert found["sha256"] == hashlib.sha256(message.body).hexdigest()
    assert message.properties.items() <= found["properties"].items()
    assert found["storeTimestamp"] == message.stored_ms
    assert found["reconsumeTimes"] == message.reconsume_times
