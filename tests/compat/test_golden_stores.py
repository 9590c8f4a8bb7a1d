"""Stores that Java RocketMQ wrote, one stopped in order, one killed: nothing in them is lost."""

from __future__ import annotations

import gzip
import hashlib
import json
import shutil
import tarfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sprocket.delay.levels.levels import DelayLevels
from sprocket.message import ids, record
from sprocket.message.hosts import pack
from sprocket.message.topic import SCHEDULE
from sprocket.runtime.disk import SystemDisk
from sprocket.store.config import StoreConfig
from sprocket.store.state.snapshot import Snapshot, decode_state, encode_state
from sprocket.store.store import Store
from sprocket.testing.clock import ManualClock
from tests.support import run

STORES = Path(__file__).parent.parent / "golden" / "stores"
#: 38 MB, nearly all of them zeros, and of no use here.
TOO_LARGE = "timerwheel"
HOST = pack("127.0.0.1:31911")
CONFIG = StoreConfig(
    log_file_bytes=65_536, queue_file_bytes=6_000, index_slots=100, index_entries=400
)

#: What a store may change when it is opened; all the rest belongs to others.
OWN = (
    *("commitlog/", "consumequeue/", "index/", "checkpoint", "abort", "lock"),
    "config/queueEnds.json",
)


def unpacked(name: str, into: Path) -> Path:
    with tarfile.open(STORES / f"{name}.tar.gz") as archive:
        members = [m for m in archive if not m.name.endswith(TOO_LARGE)]
        archive.extractall(into, members=members, filter="data")
    return into / name


def manifest(name: str) -> dict[str, Any]:
    with gzip.open(STORES / f"{name}.json.gz", "rt") as file:
        found: dict[str, Any] = json.load(file)
    return found


async def opened(root: Path, config: StoreConfig = CONFIG) -> Store:
    levels = DelayLevels.parse(config.delay_levels)
    return await Store.open(
        disk=SystemDisk(),
        clock=ManualClock(),
        root=str(root),
        config=config,
        store_host=HOST,
        tag_codes={SCHEDULE: levels.tag_code},
    )


def stored_messages(listed: dict[str, Any]) -> Iterator[tuple[str, int, dict[str, Any]]]:
    for topic, queues in listed.items():
        for number, queue in queues.items():
            for message in queue["messages"]:
                yield topic, int(number), message


def check_message(store: Store, topic: str, number: int, listed: dict[str, Any]) -> None:
    read = store.read(topic, number, listed["queueOffset"], count_max=1, bytes_max=1 << 20)
    assert (read.count, read.bytes) == (1, listed["storeSize"])
    (part,) = read.parts
    found = record.decode(part, opens_body=True)
    assert found.queue[::2] == (topic, number)
    assert (found.queue_offset, found.log_offset) == (listed["queueOffset"], listed["logOffset"])
    assert found.properties == listed["properties"]
    assert len(found.body) == listed["bodyLength"]
    assert hashlib.sha256(found.body).hexdigest() == listed["bodySha256"]
    assert found.body_crc == listed["bodyCRC"]
    assert (found.flag, found.sys_flag) == (listed["flag"], listed["sysFlag"])
    assert (found.born_ms, found.stored_ms) == (listed["bornTimestamp"], listed["storeTimestamp"])
    assert (found.born_host, found.store_host) == (listed["bornHost"], listed["storeHost"])
    assert found.reconsume_times == listed["reconsumeTimes"]
    assert found.prepared_offset == listed["preparedTransactionOffset"]
    offset_id = ids.offset_id(pack(found.store_host), found.log_offset)
    assert offset_id == listed["offsetMsgId"]
    assert found.properties.get("UNIQ_KEY", offset_id) == listed["msgId"]
    assert bytes(store.lookup(found.log_offset)) == bytes(part)


def check_queues(store: Store, listed: dict[str, Any]) -> None:
    assert {(t, n) for t, numbers in store.queues().items() for n in numbers} == {
        (topic, int(number)) for topic, queues in listed.items() for number in queues
    }
    for topic, queues in listed.items():
        for number, queue in queues.items():
            assert store.min_offset(topic, int(number)) == queue["min"]
            assert store.max_offset(topic, int(number)) == queue["max"]


@pytest.mark.parametrize(
    ("name", "count"), [("clean", 505), ("unclean", 630)], ids=["stopped", "killed"]
)
def test_every_message_is_where_java_read_it(name: str, count: int, tmp_path: Path) -> None:
    root = unpacked(name, tmp_path)
    listed = manifest(f"{name}.stored")

    async def check() -> None:
        for _ in range(2):
            store = await opened(root)
            check_queues(store, listed)
            messages = list(stored_messages(listed))
            assert len(messages) == count
            for topic, number, message in messages:
                check_message(store, topic, number, message)
            await store.close()

    run(check())


@pytest.mark.parametrize("name", ["clean.stored-after-restart", "unclean.stored-after-recovery"])
def test_what_java_recovered_is_recovered_here(name: str, tmp_path: Path) -> None:
    """Java's broker went on after its start (delayed messages came due): that part is left out."""
    root = unpacked(name.partition(".")[0], tmp_path)

    async def check() -> None:
        store = await opened(root)
        for topic, number, message in stored_messages(manifest(name)):
            if message["logOffset"] < store.log_end:
                check_message(store, topic, number, message)
        await store.close()

    run(check())


@pytest.mark.parametrize("name", ["clean", "unclean"])
def test_queues_built_from_the_log_are_those_that_java_wrote(name: str, tmp_path: Path) -> None:
    root = unpacked(name, tmp_path)
    queues = root / "consumequeue"
    written = {
        path.relative_to(queues): path.read_bytes() for path in queues.rglob("*") if path.is_file()
    }
    for path in written:
        (queues / path).unlink()

    async def rebuild() -> None:
        await (await opened(root)).close()

    run(rebuild())
    for path, content in written.items():
        assert (queues / path).read_bytes() == content, path


@pytest.mark.parametrize("name", ["clean", "unclean"])
def test_an_index_built_from_the_log_is_the_one_that_java_wrote(name: str, tmp_path: Path) -> None:
    root = unpacked(name, tmp_path)
    written = [path.read_bytes() for path in sorted((root / "index").iterdir())]
    for folder in ("index", "consumequeue"):
        shutil.rmtree(root / folder)

    async def rebuild() -> None:
        await (await opened(root)).close()

    run(rebuild())
    built = [path.read_bytes() for path in sorted((root / "index").iterdir())]
    assert len(built) == len(written)
    for mine, javas in zip(built, written, strict=True):
        assert mine == javas


@pytest.mark.parametrize("name", ["clean", "unclean"])
def test_messages_are_found_by_their_keys_in_the_index_of_java(name: str, tmp_path: Path) -> None:
    root = unpacked(name, tmp_path)

    async def find() -> None:
        store = await opened(root)
        for topic, _, message in stored_messages(manifest(f"{name}.stored")):
            properties = message["properties"]
            for key in [
                *properties.get("KEYS", "").split(),
                *properties.get("UNIQ_KEY", "").split(),
            ]:
                found = [record.parse(r).log_offset for r in store.find(topic, key, count_max=999)]
                assert message["logOffset"] in found
                assert found == sorted(set(found), reverse=True)
        await store.close()

    run(find())


def contents(root: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and not str(path.relative_to(root)).startswith(OWN)
    }


@pytest.mark.parametrize("name", ["clean", "unclean"])
def test_files_of_others_are_left_as_they_are(name: str, tmp_path: Path) -> None:
    root = unpacked(name, tmp_path)
    before = contents(root)
    assert any(path.startswith("timerlog/") for path in before)

    async def use() -> None:
        store = await opened(root)
        store.append(a_draft(0))
        await store.close()

    run(use())
    assert contents(root) == before


def test_appending_goes_on_where_java_stopped(tmp_path: Path) -> None:
    root = unpacked("unclean", tmp_path)
    listed = manifest("unclean.stored")

    async def go_on() -> None:
        store = await opened(root)
        appended = [store.append(a_draft(n)) for n in range(400)]
        first = listed["StPlain"]["0"]["max"]
        assert [a.queue_offset for a in appended] == list(range(first, first + 400))
        assert appended[0].log_offset == 404_689
        await store.close()
        store = await opened(root)
        for topic, number, message in stored_messages(listed):
            check_message(store, topic, number, message)
        for n, place in enumerate(appended):
            assert record.decode(store.lookup(place.log_offset)).body == b"more %d" % n
        await store.close()

    run(go_on())


def a_draft(n: int) -> record.Draft:
    return record.Draft(
        topic="StPlain",
        queue_number=0,
        body=b"more %d" % n,
        properties=b"TAGS\x01TagA\x02",
        tag_code=2598919,
        flag=0,
        sys_flag=0,
        born_ms=0,
        born_host=HOST,
    )


@pytest.mark.parametrize("name", ["topics", "subscriptionGroup", "consumerOffset", "delayOffset"])
def test_state_files_of_java_are_read_and_written_byte_for_byte(name: str, tmp_path: Path) -> None:
    path = unpacked("clean", tmp_path) / "config" / f"{name}.json"
    written = path.read_bytes()
    snapshot = Snapshot(SystemDisk(), str(path))
    state = snapshot.load()
    assert encode_state(state).encode() == written
    snapshot.save(state | {"more": 1})
    assert decode_state(path.read_text()) == state | {"more": 1}
    assert path.with_suffix(".json.bak").read_bytes() == written


def test_offsets_of_java_have_numbers_as_keys(tmp_path: Path) -> None:
    path = unpacked("clean", tmp_path) / "config" / "consumerOffset.json"
    state = Snapshot(SystemDisk(), str(path)).load()
    assert state["offsetTable"]["StPlain@CG_plain"] == {0: 100, 1: 100, 2: 99, 3: 100}


@pytest.mark.parametrize("name", ["clean", "unclean"], ids=["stopped", "killed"])
def test_a_log_that_java_spread_over_two_folders_is_read(name: str, tmp_path: Path) -> None:
    root = unpacked(name, tmp_path)
    listed = manifest(f"{name}.stored")
    other = tmp_path / "other-disk" / "commitlog"
    other.mkdir(parents=True)
    for number, file in enumerate(sorted((root / "commitlog").iterdir())):
        if number % 2:
            file.rename(other / file.name)

    async def check() -> None:
        paths = (str(root / "commitlog"), str(other))
        store = await opened(root, replace(CONFIG, log_paths=paths))
        check_queues(store, listed)
        for topic, number, message in stored_messages(listed):
            check_message(store, topic, number, message)
        await store.close()

    run(check())
