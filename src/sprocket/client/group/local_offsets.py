"""Offsets of a broadcasting consumer, in a file on its machine, in the format of the Java client.

`<folder>/<client id>/<group>/offsets.json`, whose keys are objects, as fastjson writes them:

    {"offsetTable":{{"brokerName":"broker-a","queueId":0,"topic":"news"}:17}}

* The file is replaced as a whole (a new file is written, synced and renamed). The previous version
  stays as `offsets.json.bak`. Nothing is saved before the load has finished.
* If the file is missing, empty or broken, its backup is used. If that is broken too, the start
  fails, because a new beginning would skip or repeat messages without notice.
* Offsets of queues that are not held stay in the file, because their broker may come back.
* A lock gives the folder to one process, so that two clients with one id cannot overwrite its file.

Source: LocalFileOffsetStore, OffsetSerializeWrapper of RocketMQ 4.9 and 5.x; files written by them.
"""

from __future__ import annotations

import json
import logging
import os
import re
from dataclasses import replace

from sprocket.base.errors import DirectoryInUse, RemoteProtocolError, StoreError, UsageError
from sprocket.base.ports import Disk
from sprocket.client.base.world import ClientEnvironment
from sprocket.client.config import ConsumerConfig
from sprocket.message.offsets import QueueOffset
from sprocket.message.queue import QueueId
from sprocket.protocol.lenient_json import ObjectKey, parse

logger = logging.getLogger(__name__)

#: The default instance of a broadcasting consumer, the last part of its client id, as in Java.
_BROADCASTING_INSTANCE = "DEFAULT"

_ROOT = "~/.rocketmq_offsets"
_FILE = "offsets.json"
#: An entry has about 120 bytes, so this is enough for 100,000 queues.
_FILE_BYTES_MAX = 16 << 20
_QUEUES_MAX = 100_000
#: The client ids that are allowed, since the id is the name of a folder.
_CLIENT_ID = re.compile(r"[^/\\\0]{1,200}")


class LocalOffsets:
    """The offsets of one group at this client, in memory and in a file; created by `open`."""

    def __init__(self, disk: Disk, folder: str) -> None:
        self.path = f"{folder}/{_FILE}"
        self._disk = disk
        self._lock = disk.lock(folder)
        self._is_changed = False
        #: Whether the file is worth keeping as the backup of the next one.
        self._keeps_backup = True
        try:
            self._table = self._load()
        except BaseException:  # raised again; only the lock must be released
            self._lock.release()
            raise

    @classmethod
    def open(cls, disk: Disk, root: str | None, *, client_id: str, group: str) -> LocalOffsets:
        """Locks the folder and reads the file, if there is one.

        Args:
            root: the folder of all clients; None: `~/.rocketmq_offsets`, as in Java.

        Raises:
            UsageError: the client id cannot be the name of a folder.
            DirectoryInUse: another client with this id and group runs on this machine.
            StoreError: both the file and its backup are broken.
            OSError: a file operation failed.
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
        """All known offsets, including those of queues that are not held."""
        return dict(self._table)

    async def committed(self, queue: QueueId) -> QueueOffset | None:
        """Returns the offset at which to continue, or None if the queue was never read."""
        return self._table.get(queue)

    async def commit(self, queue: QueueId, offset: int) -> None:
        """Sets an offset in memory; `save` writes it to the file.

        Raises:
            StoreError: there are offsets of 100,000 queues already.
        """
        if queue not in self._table and len(self._table) >= _QUEUES_MAX:
            raise StoreError(f"{self.path} has positions of {_QUEUES_MAX} queues, its limit")
        if self._table.get(queue) != offset:
            self._table[queue] = QueueOffset(offset)
            self._is_changed = True

    def save(self) -> None:
        """Writes the file if an offset has changed; after a failure, the next call tries again."""
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
        """Saves the offsets and releases the folder."""
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
    """Returns a file's content, as the Java client writes it."""
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
    """Returns the offsets in a file.

    Raises:
        ValueError: the content is not in this format.
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


def broadcasting_config(config: ConsumerConfig) -> ConsumerConfig:
    """Returns the configuration with a fixed instance, because the file's path contains it."""
    if config.instance is not None:
        return config
    return replace(config, instance=_BROADCASTING_INSTANCE)


def open_local(
    world: ClientEnvironment | None, folder: str | None, client_id: str, group: str
) -> LocalOffsets:
    """The offsets of a client's group on this machine.

    Raises:
        UsageError: the world has no disk.
        DirectoryInUse, StoreError, OSError: as for `LocalOffsets.open`.
    """
    disk = ClientEnvironment.real_disk() if world is None else world.disk
    if disk is None:
        raise UsageError("broadcasting needs a disk for its positions")
    return LocalOffsets.open(disk, folder, client_id=client_id, group=group)
