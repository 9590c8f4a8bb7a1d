"""Makes a backup of a store, or adds to one what has come since, while a broker has it open.

1. The state files are read, all as of one time.
2. The end of the log is looked for, so everything that was acknowledged before the backup began is
   before it, and so is whatever the state files speak of.
3. The log is copied up to there: files of it are only appended to, so what is in the backup already
   is not copied again.
4. The list of what the backup has is replaced.

Queues and key index are not copied: a start builds them from the log.
"""

from __future__ import annotations

from typing import NamedTuple

from sprocket.base.errors import OffsetOutOfRange, StoreError
from sprocket.base.ports import Disk
from sprocket.store.backup.copied_log import Advance, copy_log, files_from, find_end
from sprocket.store.backup.manifest import FORM, Manifest, log_folder, read_manifest, write_manifest
from sprocket.store.backup.states import read_states, save_states
from sprocket.store.config import StoreConfig
from sprocket.store.inspection.inspected import InspectedStore
from sprocket.store.inspection.walk import LogFiles
from sprocket.store.log.damage import Damage
from sprocket.store.log.paths import LogPaths
from sprocket.store.state.checkpoint import confirmed_in

#: So much before its end must be the same in backup and store; records have times and checksums,
#: so other messages are not.
_COMPARED_BYTES = 1 << 20


class BackupReport(NamedTuple):
    """What a backup has got.

    Attributes:
        start, end: the log offsets at which its log begins and ends.
        copied_bytes: bytes of the log that were copied this time.
        states: how many states it has.
        damaged: parts of the new log that are no records, copied as they are.
    """

    start: int
    end: int
    copied_bytes: int
    states: int
    damaged: tuple[Damage, ...]


async def back_up(
    disk: Disk,
    root: str,
    backup: str,
    config: StoreConfig,
    *,
    now_ms: int,
    advance: Advance = lambda size: None,
) -> BackupReport:
    """Copies a store into a folder, or what is new of it into the backup that is there.

    Args:
        root: the folder of the store; a broker may have it open.
        backup: the folder of the backup; made if it is missing.
        config: the settings of the store, for the folders of its log.
        advance: is called with the number of bytes just copied.

    Raises:
        DirectoryInUse: something else writes this backup.
        StoreError: there is no store; the backup is one of another store, or messages between the
            two are deleted already; or the backup is broken.
        OSError: a disk failed or is full. The backup is what it was before; but what a member of a
            group has taken back may be overwritten already, and the next backup completes that.
    """
    root = InspectedStore(disk, root, config).root
    disk.make_directory(backup)
    lock = disk.lock(backup)
    try:
        return await _add(disk, root, backup, config, now_ms, advance)
    finally:
        lock.release()


async def _add(
    disk: Disk, root: str, backup: str, config: StoreConfig, now_ms: int, advance: Advance
) -> BackupReport:
    before = read_manifest(disk, backup)
    paths = LogPaths.of(root, config.log_paths, config.log_read_only_paths).every
    files = await read_states(disk, root)
    log = LogFiles(disk, paths)
    begin = log.start if before is None else before.settled
    if before is not None:
        _check_same(log, disk, backup, before)

    grown = LogFiles(disk, paths, log.file_bytes or None)
    end, damaged = await find_end(files_from(grown, begin))
    end = max(end, begin)
    copied = LogFiles(disk, paths, log.file_bytes or None)
    try:
        part = await copy_log(copied, begin, end, disk, log_folder(backup), advance)
    except OffsetOutOfRange as error:
        raise StoreError(f"{error}: it was deleted while it was copied; try again") from error
    first = part.begin
    if before is not None and first > begin:
        raise _gap(backup)
    last_ms = before.states[-1].taken_ms if before is not None and before.states else 0
    taken_ms = max(now_ms, last_ms + 1)
    start = first if before is None else log.start
    entry = save_states(disk, backup, files, taken_ms=taken_ms, start=start, end=end)
    confirmed = confirmed_in(disk.read(f"{root}/checkpoint") or b"")
    logs = {**({} if before is None else before.logs), **part.checksums}
    manifest = Manifest(
        form=FORM,
        file_bytes=log.file_bytes,
        start=first if before is None else before.start,
        end=end,
        settled=min(confirmed, end) if confirmed > first else end,
        logs={name: each for name, each in logs.items() if int(name) < end},
        states=(*(() if before is None else before.states), entry),
    )
    write_manifest(disk, backup, manifest)
    for name in logs.keys() - manifest.logs.keys():
        disk.remove(f"{log_folder(backup)}/{name}")
    return BackupReport(manifest.start, end, end - first, len(manifest.states), damaged)


def _check_same(log: LogFiles, disk: Disk, backup: str, before: Manifest) -> None:
    """Raises a StoreError unless the backup's log is the beginning of this one."""
    if not before.file_bytes:  # there was no message yet
        return
    if log.file_bytes not in (0, before.file_bytes):
        raise StoreError(
            f"the backup in {backup} has log files of {before.file_bytes} bytes, the store has "
            f"files of {log.file_bytes}: begin a new backup"
        )
    settled = before.settled
    if log.start > settled:
        raise _gap(backup)
    if before.start == settled:
        return
    own = LogFiles(disk, [log_folder(backup)], before.file_bytes)
    start = (settled - 1) - (settled - 1) % before.file_bytes
    behind = settled - start
    try:
        mine, theirs = own.file(start), log.file(start)
    except OffsetOutOfRange as error:
        if start < log.start:  # the whole of it is deleted, and nothing behind it
            return
        raise StoreError(f"{error}, so the store is not the one of the backup {backup}") from error
    for at, until in ((0, min(behind, 4096)), (max(behind - _COMPARED_BYTES, 0), behind)):
        if bytes(mine[at:until]) != bytes(theirs[at:until]):
            raise StoreError(
                f"the store has other messages than the backup in {backup} before log offset "
                f"{settled}: it is another one; begin a new backup"
            )


def _gap(backup: str) -> StoreError:
    return StoreError(
        f"messages behind those of the backup in {backup} are deleted already: begin a new backup"
    )
