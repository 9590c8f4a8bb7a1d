"""Damage of views after an orderly stop is found at the start, and they are built again."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pytest

from sprocket.store.opening import sampled
from sprocket.store.store import Store
from sprocket.testing.disk import MemoryDisk
from tests.store.making import ROOT, SMALL, a_draft, bodies, opened
from tests.support import run

COUNT = 50
Damage = Callable[[MemoryDisk], None]
HEAD, SLOTS_END = 40, 40 + 8 * 4


async def stopped() -> MemoryDisk:
    disk = MemoryDisk()
    store = await opened(disk)
    for number in range(COUNT):
        keys, unique_key = f"k{number}", f"u{number}"
        properties = f"TAGS\x01a\x02KEYS\x01{keys}\x02UNIQ_KEY\x01{unique_key}\x02".encode()
        store.append(
            a_draft(
                b"%d" % number,
                queue_number=number % 2,
                properties=properties,
                keys=keys,
                unique_key=unique_key,
            )
        )
    await store.close()
    return disk


def file_of(disk: MemoryDisk, folder: str, at: int) -> str:
    names = [name for name in disk.names(f"{ROOT}/{folder}") if name.isdigit()]
    return f"{ROOT}/{folder}/{names[at]}"


def written(folder: str, at: int, place: int, content: bytes) -> Damage:
    """Bytes of a file that are others now."""

    def do(disk: MemoryDisk) -> None:
        path = file_of(disk, folder, at)
        raw = bytearray(disk.read(path) or b"")
        raw[place : place + len(content)] = content
        disk.replace(path, bytes(raw), backup=False)

    return do


def cut(folder: str, at: int, size: int) -> Damage:
    """A file that is shorter now."""

    def do(disk: MemoryDisk) -> None:
        path = file_of(disk, folder, at)
        disk.replace(path, (disk.read(path) or b"")[:size], backup=False)

    return do


def removed(folder: str, at: int) -> Damage:
    """A file that is gone."""
    return lambda disk: disk.remove(file_of(disk, folder, at))


def added(folder: str, size: int) -> Damage:
    """A next file that is too short."""

    def do(disk: MemoryDisk) -> None:
        count = len(disk.names(f"{ROOT}/{folder}"))
        path = f"{ROOT}/{folder}/{count * SMALL.queue_file_bytes:020d}"
        disk.replace(path, b"\0" * size)

    return do


QUEUE = "consumequeue/orders/1"
DAMAGES: dict[str, Damage] = {
    "no index file": removed("index", 0),
    "no newest index file": removed("index", -1),
    "an index of 33 bytes": cut("index", -1, 33),
    "an index without its last entries": cut("index", 0, SLOTS_END + 40),
    "an index head of zeros": written("index", 0, 0, bytes(HEAD)),
    "an index head of noise": written("index", 0, 0, b"\x7f" * HEAD),
    "index slots of zeros": written("index", 0, HEAD, bytes(32)),
    "index entries of zeros": written("index", 0, SLOTS_END + 20, bytes(400)),
    "index entries of noise": written("index", 0, SLOTS_END + 20, b"\x7f" * 400),
    "an index file of zeros": written("index", 0, 0, bytes(SLOTS_END + 32 * 20)),
    "the index of another store": written("index", 0, SLOTS_END + 20, (b"\0" * 3 + b"\1") * 155),
    "a next queue file of 33 bytes": added(QUEUE, 33),
    "a last queue file of 37 bytes": cut(QUEUE, -1, 37),
    "a first queue file of 37 bytes": cut(QUEUE, 0, 37),
    "a last queue file of two entries": cut(QUEUE, -1, 40),
    "a last entry of noise": written(QUEUE, -1, 0, b"\x11" * 20),
    "a queue of noise": written(QUEUE, 0, 0, b"\x11" * 160),
    "a last entry of the other queue": lambda disk: written(
        QUEUE, -1, 0, (disk.read(file_of(disk, "consumequeue/orders/0", -1)) or b"")[:20]
    )(disk),
}


def check_all(store: Store) -> None:
    for queue in (0, 1):
        assert bodies(store, number=queue) == [b"%d" % n for n in range(queue, COUNT, 2)]
    for number in range(COUNT):
        for key in (f"k{number}", f"u{number}"):
            assert len(store.find("orders", key, count_max=9)) == 1, key


@pytest.mark.parametrize("name", DAMAGES)
def test_views_that_were_damaged_are_built_again(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def check() -> None:
        disk = await stopped()
        DAMAGES[name](disk)
        store = await opened(disk)
        check_all(store)
        assert store.append(a_draft(b"next", queue_number=1)).queue_offset == COUNT // 2
        await store.close()

    with caplog.at_level(logging.WARNING):
        run(check())
    assert "rebuilt from the log" in caplog.text or "replayed" in caplog.text


@pytest.mark.parametrize("name", DAMAGES)
def test_a_kill_while_they_are_built_again_hides_nothing(name: str) -> None:
    async def check() -> None:
        disk = await stopped()
        DAMAGES[name](disk)
        store = await opened(disk)
        again = await opened(disk.after_kill())
        check_all(again)
        await again.close()
        await store.close()

    run(check())


def test_a_store_that_is_whole_is_not_read_through(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def check() -> None:
        disk = await stopped()
        reads = 0
        whole = sampled.whole_record

        def counted(*args: object, **words: object) -> object:
            nonlocal reads
            reads += 1
            return whole(*args, **words)  # type: ignore[arg-type]

        monkeypatch.setattr(sampled, "whole_record", counted)
        await (await opened(disk)).close()
        assert 0 < reads <= 6

    with caplog.at_level(logging.WARNING):
        run(check())
    assert not caplog.records
