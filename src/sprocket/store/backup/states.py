"""The state files of a backup: which ones, how they are read together, and as of an earlier time.

State files are written whenever their tables change, one by one. They are read until two rounds
show the same, so they belong together. They must be read before the end of the log is looked for:
then nothing in them, such as a committed offset, leads behind the end.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Any
from zlib import crc32

from sprocket.base.errors import StoreError
from sprocket.base.ports import Disk
from sprocket.message.topic import SCHEDULE
from sprocket.store.backup.manifest import StateEntry
from sprocket.store.state.snapshot import decode_state, encode_state

#: Not copied, because they belong to other files that a start builds anew from the log.
_LEFT_OUT = frozenset({"timercheck", "timermetrics"})
#: Left out where the state is taken back in time, because they speak of offsets that are not there
#: yet; without them messages may come twice, and none is lost.
_ONLY_NOW = frozenset(
    {"consumerOrderInfo.json", "escapedMessages.json", "queueLocks.json", "transactionMetrics"}
)
#: Beside the folder `config`: the epochs of the log.
EPOCHS = "epochFileCheckpoint"
#: Tables whose rows of a later time are kept: the topic or group may have been made since, and its
#: messages would have no topic.
_GROWING = {"topics.json": "topicConfigTable", "subscriptionGroup.json": "subscriptionGroupTable"}

_DELETED = "deletedTopics.json"

_ROUNDS = 50
_PAUSE_S = 0.02

#: Gives where a queue ended: topic, number, and the offset if that is not known.
QueueEnd = Callable[[str, int, int], int]


async def read_states(disk: Disk, root: str) -> dict[str, bytes]:
    """The state files of a store, all as of one time.

    Raises:
        StoreError: they change all the time.
        OSError: the disk refuses it.
    """
    files = _read(disk, root)
    for _ in range(_ROUNDS):
        await asyncio.sleep(_PAUSE_S)
        before, files = files, _read(disk, root)
        if files == before:
            return files
    raise StoreError(f"the files in {root}/config change all the time: try again")


def _read(disk: Disk, root: str) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    folder = f"{root}/config"
    for name in disk.names(folder):
        path = f"{folder}/{name}"
        if name.endswith((".bak", ".tmp")) or name in _LEFT_OUT:
            continue
        try:
            content = disk.read(path) or disk.read(f"{path}.bak")
        except IsADirectoryError:  # what RocketMQ keeps in databases of its own
            continue
        if content is not None:
            found[name] = content
    epochs = disk.read(f"{root}/{EPOCHS}")
    return found if epochs is None else {**found, EPOCHS: epochs}


def save_states(
    disk: Disk, backup: str, files: Mapping[str, bytes], *, taken_ms: int, start: int, end: int
) -> StateEntry:
    """Writes state files into a backup, readable by their owner only.

    Raises:
        OSError: the disk refuses it.
    """
    checksums = {name: crc32(content) for name, content in files.items()}
    entry = StateEntry(taken_ms, start, end, checksums)
    disk.make_directory(entry.folder(backup))
    for name, content in files.items():
        disk.replace_secret(f"{entry.folder(backup)}/{name}", content)
    return entry


def load_states(disk: Disk, backup: str, entry: StateEntry) -> dict[str, bytes]:
    """The state files of a backup.

    Raises:
        StoreError: one is missing or damaged.
        OSError: the disk refuses it.
    """
    files: dict[str, bytes] = {}
    for name, checksum in entry.files.items():
        path = f"{entry.folder(backup)}/{name}"
        content = disk.read(path)
        if content is None:
            raise StoreError(f"{path} is missing")
        if crc32(content) != checksum:
            raise StoreError(f"{path} is damaged: it has another checksum than in backup.json")
        files[name] = content
    return files


def with_deletions(
    files: Mapping[str, bytes], others: Iterable[Mapping[str, bytes]], *, start: int, cut: int
) -> dict[str, bytes]:
    """State files that know of every deletion of a topic in bytes [start, cut) of the log.

    A topic that was deleted and made again has offsets that begin again. So the log can only be
    read by whoever knows of it, whatever the time of the other files.

    Args:
        others: the files of all states, before and after.

    Raises:
        StoreError: a table is broken.
    """
    known: dict[str, int] = {}
    for each in others:
        table = _parsed(_DELETED, each.get(_DELETED)).get("deletedTopics", {})
        for topic, offset in table.items():
            if start < offset <= cut:
                known[topic] = max(known.get(topic, 0), offset)
    merged = {name: content for name, content in files.items() if name != _DELETED}
    if known:
        merged[_DELETED] = encode_state({"deletedTopics": known}).encode()
    return merged


def with_later(files: Mapping[str, bytes], later: Mapping[str, bytes]) -> dict[str, bytes]:
    """State files, with the topics and groups that only a later state has.

    Raises:
        StoreError: a table is broken.
    """
    merged = dict(files)
    for name, table in _GROWING.items():
        if name not in later:
            continue
        state, other = _parsed(name, files.get(name)), _parsed(name, later[name])
        rows = {**(other.get(table) or {}), **(state.get(table) or {})}
        if rows != (state.get(table) or {}):
            merged[name] = encode_state({**other, **state, table: rows}).encode()
    return merged


def bounded(files: Mapping[str, bytes], *, cut: int, queue_end: QueueEnd) -> dict[str, bytes]:
    """State files as of an earlier time, at which the log ended at `cut`.

    Positions are lowered to where their queues ended, so that no message is passed over that is
    stored later under one of the offsets.

    Raises:
        StoreError: a table is broken.
    """
    kept = {name: content for name, content in files.items() if name not in _ONLY_NOW}
    changes: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
        "consumerOffset.json": lambda state: _offsets(state, queue_end),
        "delayOffset.json": lambda state: _delays(state, queue_end),
        "queueEnds.json": lambda state: _ends(state, cut, queue_end),
    }
    for name, change in changes.items():
        if name in kept:
            try:
                kept[name] = encode_state(change(_parsed(name, kept[name]))).encode()
            except (AttributeError, TypeError, ValueError) as error:
                raise StoreError(f"the backup's {name} is no such table: {error}") from error
    return kept


def _offsets(state: dict[str, Any], queue_end: QueueEnd) -> dict[str, Any]:
    table = {
        key: {
            number: min(offset, queue_end(key.partition("@")[0], int(number), offset))
            for number, offset in rows.items()
        }
        for key, rows in state.get("offsetTable", {}).items()
    }
    return {**state, "offsetTable": table}


def _delays(state: dict[str, Any], queue_end: QueueEnd) -> dict[str, Any]:
    table = {
        level: min(offset, queue_end(SCHEDULE, int(level) - 1, offset))
        for level, offset in state.get("offsetTable", {}).items()
    }
    return {**state, "offsetTable": table}


def _ends(state: dict[str, Any], cut: int, queue_end: QueueEnd) -> dict[str, Any]:
    ends = {
        topic: {
            number: min(end, queue_end(topic, int(number), end)) for number, end in rows.items()
        }
        for topic, rows in state.get("queueEnds", {}).items()
    }
    return {"logEnd": min(int(state.get("logEnd", 0)), cut), "queueEnds": ends}


def _parsed(name: str, content: bytes | None) -> dict[str, Any]:
    try:
        return decode_state((content or b"{}").decode())
    except ValueError as error:
        raise StoreError(f"the backup's {name} is broken: {error}") from error
