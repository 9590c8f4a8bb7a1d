"""Positions of a broadcasting consumer: in a file of its machine, as Java's client keeps them.

`<folder>/<client id>/<group>/offsets.json`, whose keys are objects, as fastjson writes them:

    {"offsetTable":{{"brokerName":"broker-a","queueId":0,"topic":"news"}:17}}

* The file is replaced whole (written anew, synced, renamed), the version before stays as
  `offsets.json.bak`, and nothing is saved that was not loaded before.
* A file that is missing, empty or broken is made up for by its backup; if that is broken too, the
  start fails, since to begin anew would skip or repeat messages without a word.
* Positions of queues that are not held stay: a broker that is away for a while comes back.
* One process at a time has the folder, so that two clients of one id do not overwrite each other.

Source: LocalFileOffsetStore, OffsetSerializeWrapper of RocketMQ 4.9 and 5.x; files written by them.
"""

from __future__ import annotations

import json
import logging
import os
import re

from sprocket.base.errors import DirectoryInUse, RemoteProtocolError, StoreError, UsageError
from sprocket.base.ports import Disk
from sprocket.message.offsets import QueueOffset
from sprocket.message.queue import QueueId
from sprocket.protocol.lenient_json import ObjectKey, parse

logger = logging.getLogger(__name__)

_ROOT = "~/.rocketmq_offsets"
_FILE = "offsets.json"
#: An entry has some 120 bytes, so this is enough for 100,000 queues.
_FILE_BYTES_MAX = 16 << 20
_QUEUES_MAX = 100_000
#: What a client id may have in it, since it is the name of a folder.
_CLIENT_ID = re.compile(r"[^/\\\0]{1,200}")


class LocalOffsets:
    """One group's positions at this client, in memory and in their file. Use `open`."""

    def __init__(self, disk: Disk, folder: str) -> None:
        self.path = f"{folder}/{_FILE}"
        self._disk = disk
        self._lock = disk.lock(folder)
        self._is_changed = False
        #: Whether the file is worth keeping as the backup of the next one.
        self._keeps_backup = True
        try:
            self._table = self._load()
        except BaseException:  # goes on up; only the folder must be free again
            self._lock.release()
            raise

    @classmethod
    def open(cls, disk: Disk, root: str | None, *, client_id: str, group: str) -> LocalOffsets:
        """Takes the folder and reads the file, if there is one.

        Args:
            root: the folder of all clients; None for the one in the user's own, as in Java.

        Raises:
            UsageError: the client id cannot be a folder's name.
            DirectoryInUse: another client with this id and group runs on this machine.
            StoreError: file and backup are broken.
            OSError: the disk refuses.
        """
        if not _CLIENT_ID.fullmatch(client_id):
            raise UsageError(f"client id {client_id!r} cannot be the name of a folder")
        root = os.path.expanduser(_ROOT) if root is None else root
        folder = f"{root}/{client_id}/{group}"
        disk.make_directory(folder)
        try:
            return cls(disk, folder)
        except DirectoryInUse as error:
            raise DirectoryInUse(
                f"{error}; members of a broadcasting group on one machine need an `instance` each"
            ) from None

    @property
    def positions(self) -> dict[QueueId, QueueOffset]:
        """All that is known, also of queues that are not held."""
        return dict(self._table)

    async def committed(self, queue: QueueId) -> QueueOffset | None:
        """Where to go on, or None if the queue was never read."""
        return self._table.get(queue)

    async def commit(self, queue: QueueId, offset: int) -> None:
        """Takes note of a position; `save` writes it down.

        Raises:
            StoreError: there are too many queues.
        """
        if queue not in self._table and len(self._table) >= _QUEUES_MAX:
            raise StoreError(f"{self.path} has positions of {_QUEUES_MAX} queues, its limit")
        if self._table.get(queue) != offset:
            self._table[queue] = QueueOffset(offset)
            self._is_changed = True

    def save(self) -> None:
        """Writes the file, if something changed; if the disk refuses, it stays to be written."""
        if not self._is_changed:
            return
        try:
            self._disk.replace(self.path, encode(self._table), backup=self._keeps_backup)
        except OSError as error:
            logger.error("%s cannot be saved: %s", self.path, error)
            return
        self._is_changed = False
        self._keeps_backup = True

    def close(self) -> None:
        """Saves, and gives the folder back."""
        self.save()
        self._lock.release()

    def _load(self) -> dict[QueueId, QueueOffset]:
        raw = self._disk.read(self.path)
        if raw:
            try:
                return decode(raw)
            except ValueError as error:
                logger.error("%s is broken, its backup is used: %s", self.path, error)
        backup = self._disk.read(f"{self.path}.bak")
        self._keeps_backup = False
        if not raw and not backup:
            return {}
        try:
            table = decode(backup or b"")
        except ValueError as error:
            raise StoreError(
                f"{self.path} is broken or missing and so is {self.path}.bak ({error}): repair one "
                "of them, or remove both to begin anew"
            ) from None
        self._is_changed = True
        return table


def encode(table: dict[QueueId, QueueOffset]) -> bytes:
    """A file's content, as Java's client writes it."""
    entries = [
        f'{{\n\t\t\t"brokerName":{_text(queue.broker)},\n\t\t\t"queueId":{queue.number},'
        f'\n\t\t\t"topic":{_text(queue.topic)}\n\t\t}}:{offset}'
        for queue, offset in sorted(table.items())
    ]
    inner = ",".join(entries) + "\n\t" if entries else ""
    return f'{{\n\t"offsetTable":{{{inner}}}\n}}'.encode()


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def decode(raw: bytes) -> dict[QueueId, QueueOffset]:
    """The positions in a file.

    Raises:
        ValueError: it is no such file.
    """
    try:
        state = parse(raw, bytes_max=_FILE_BYTES_MAX)
    except RemoteProtocolError as error:
        raise ValueError(str(error)) from error
    table = state.get("offsetTable") if isinstance(state, dict) else None
    if not isinstance(table, dict) or len(table) > _QUEUES_MAX:
        raise ValueError("it has no table of offsets")
    return dict(_entry(key, value) for key, value in table.items())


def _entry(key: object, value: object) -> tuple[QueueId, QueueOffset]:
    if isinstance(key, ObjectKey):
        topic, broker = key.get("topic"), key.get("brokerName")
        number = key.get("queueId")
        if isinstance(topic, str) and isinstance(broker, str) and _is_count(number, 2**31):
            if _is_count(value, 2**63):
                return QueueId(topic, broker, int(str(number))), QueueOffset(int(str(value)))
            raise ValueError(f"{value!r} is no offset")
    raise ValueError(f"{key!r} is no queue")


def _is_count(value: object, limit: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < limit
