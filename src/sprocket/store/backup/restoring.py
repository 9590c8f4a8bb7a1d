"""Makes a store from a backup: with all that it has, or as it was at some time.

The log is read and compared with its checksums first. Then it is copied up to the cut, with the
state files of that time, into a new folder, which gets its name last. The first start builds queues
and key index from the log.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import NamedTuple

from sprocket.base.errors import DamagedLog, StoreError, UsageError
from sprocket.base.ports import Disk
from sprocket.message.record import Record
from sprocket.store.backup.copied_log import Advance, checksum, copy_log, files_from
from sprocket.store.backup.manifest import (
    Manifest,
    StateEntry,
    log_folder,
    read_manifest,
)
from sprocket.store.backup.states import (
    EPOCHS,
    bounded,
    load_states,
    with_deletions,
    with_later,
)
from sprocket.store.config import StoreConfig
from sprocket.store.inspection.walk import LogFiles, walk, walk_entries
from sprocket.store.log.damage import Damage
from sprocket.store.log.paths import LogPaths
from sprocket.store.state.checkpoint import Checkpoint
from sprocket.store.views.record_batch import RecordBatch

_SECRET = "accounts.json"


class CheckedBackup(NamedTuple):
    """What was found in a backup, up to a time.

    Attributes:
        manifest: its list.
        end: log offset at which the log ends at that time.
        records: how many records are before that.
        stored_ms: when the last one was stored; 0 if there is none.
        state: the state files that belong to it.
    """

    manifest: Manifest
    end: int
    records: int
    stored_ms: int
    state: StateEntry


class RestoreReport(NamedTuple):
    """What was restored.

    Attributes:
        found: what it was made from.
        moved_to: where the folder is that was there before; empty if there was none.
    """

    found: CheckedBackup
    moved_to: str


async def check_backup(
    disk: Disk, backup: str, *, at_ms: int | None = None, advance: Advance = lambda size: None
) -> CheckedBackup:
    """Reads a whole backup, and compares it with its checksums.

    Args:
        at_ms: only what was stored until then, ms since 1970 UTC; None: everything.

    Raises:
        UsageError: the time is before all that the backup knows.
        StoreError: there is no backup, or a file of it is missing or damaged.
        DamagedLog: the log is damaged.
        OSError: the disk failed.
    """
    manifest = read_manifest(disk, backup)
    if manifest is None or not manifest.states:
        raise StoreError(f"there is no backup in {backup}")
    for entry in manifest.states:
        load_states(disk, backup, entry)
    await _check_files(disk, backup, manifest)
    log = _log(disk, backup, manifest)
    end, records, stored_ms = await _walked(log, manifest, at_ms, advance)
    if at_ms is not None and not records:
        _check_begun(log, manifest, at_ms)
    return CheckedBackup(manifest, end, records, stored_ms, _state_at(manifest, end))


async def _check_files(disk: Disk, backup: str, manifest: Manifest) -> None:
    size = manifest.file_bytes
    for name, expected in manifest.logs.items():
        path = f"{log_folder(backup)}/{name}"
        if disk.size(path) != size:
            raise DamagedLog(f"{path} is missing, or cut")
        if await checksum(disk.peek(path), min(manifest.end - int(name), size)) != expected:
            raise DamagedLog(f"{path} is damaged: it has another checksum than in backup.json")


def _log(disk: Disk, backup: str, manifest: Manifest) -> LogFiles:
    return LogFiles(disk, [log_folder(backup)], manifest.file_bytes or None)


def _state_at(manifest: Manifest, end: int) -> StateEntry:
    """The newest state that speaks of nothing behind a log offset; the oldest if there is none."""
    known = [entry for entry in manifest.states if entry.end <= end]
    return known[-1] if known else manifest.states[0]


async def _walked(
    log: LogFiles, manifest: Manifest, at_ms: int | None, advance: Advance
) -> tuple[int, int, int]:
    """Where the log ends at a time, how many records are before that, when the last was stored."""
    end = manifest.start
    records = stored_ms = 0
    for each in walk_entries(files_from(log, manifest.start), until=manifest.end, advance=advance):
        if isinstance(each, Damage):
            raise DamagedLog(str(each))
        if isinstance(each, RecordBatch):
            if at_ms is not None and each.stored_ms > at_ms:
                more, end, last_ms = _until(log, end, each.end, at_ms)
                return end, records + more, last_ms or stored_ms
            end, stored_ms = each.end, each.stored_ms
            records += each.count
            await asyncio.sleep(0)
        elif each.end < manifest.end:
            raise DamagedLog(
                f"{each.path} at byte {each.position}: the log ends at log offset {each.end}, and "
                f"the backup has had it up to {manifest.end}"
            )
    return manifest.end if at_ms is None else end, records, stored_ms


def _check_begun(log: LogFiles, manifest: Manifest, at_ms: int) -> None:
    """Refuses a time from before the first record and the first state: nothing is known of it."""
    known = [manifest.states[0].taken_ms]
    for each in walk(files_from(log, manifest.start), until=manifest.end):
        if isinstance(each, Record):
            known.append(each.stored_ms)
            break
    if at_ms < min(known):
        raise UsageError(
            f"the backup knows nothing of {_utc(at_ms)}: its earliest time is {_utc(min(known))}"
        )


def _utc(time_ms: int) -> str:
    return datetime.fromtimestamp(time_ms / 1000, UTC).isoformat(" ", "milliseconds")


def _until(log: LogFiles, begin: int, end: int, at_ms: int) -> tuple[int, int, int]:
    """How many of the records in [begin, end) are from before a time, and where they end."""
    count = stored_ms = 0
    for each in walk(files_from(log, begin), until=end):
        if isinstance(each, Record) and each.log_offset >= begin:
            if each.stored_ms > at_ms:
                break
            begin, stored_ms = each.log_offset + each.size, each.stored_ms
            count += 1
    return count, begin, stored_ms


async def restore(
    disk: Disk,
    backup: str,
    root: str,
    config: StoreConfig,
    *,
    now_ms: int,
    at_ms: int | None = None,
    replaces: bool = False,
    advance: Advance = lambda size: None,
) -> RestoreReport:
    """Makes a store from a backup.

    Args:
        root: the folder of the new store.
        config: the settings of the broker that will use it, for the folders of its log.
        at_ms: as of this time, ms since 1970 UTC; None: with all that the backup has.
        replaces: whether a folder that is there is moved aside; nothing is ever deleted.

    Raises:
        UsageError: the folder is not empty, or a broker has it open; or its log is elsewhere, and
            there are files; or the time is before all that the backup knows.
        StoreError, DamagedLog: as `check_backup`.
        OSError: a disk failed or is full. What was there before is still there.
    """
    found = await check_backup(disk, backup, at_ms=at_ms)
    files = await _states(disk, backup, found)
    draft = f"{root}.restored-{now_ms}"
    paths = LogPaths.of(draft, config.log_paths, config.log_read_only_paths)
    _check_free(disk, root, paths, replaces=replaces)
    disk.make_directory(f"{draft}/config")
    log = _log(disk, backup, found.manifest)
    await copy_log(log, found.state.start, found.end, disk, paths.writable[0], advance)
    for name, content in files.items():
        path = f"{draft}/{name}" if name == EPOCHS else f"{draft}/config/{name}"
        if name == _SECRET:
            disk.replace_secret(path, content)
        else:
            disk.replace(path, content, backup=False)
    checkpoint = Checkpoint(disk, f"{draft}/checkpoint")
    checkpoint.load()
    checkpoint.log_ms = found.stored_ms
    checkpoint.flushed = found.end
    await checkpoint.save_for_replay(found.state.start)
    checkpoint.close()
    moved_to = _move_aside(disk, root, now_ms)
    disk.move(draft, root)
    return RestoreReport(found, moved_to)


def _check_free(disk: Disk, root: str, paths: LogPaths, *, replaces: bool) -> None:
    if disk.names(root):
        if not replaces:
            raise UsageError(f"{root} is not empty: with --yes it is moved aside first")
        disk.lock(root).release()
    for folder in paths.every:
        if disk.names(folder):
            raise UsageError(f"there are files in {folder}: move them away first")


def _move_aside(disk: Disk, root: str, now_ms: int) -> str:
    if not disk.names(root):
        return ""
    moved_to = f"{root}.before-{now_ms}"
    disk.move(root, moved_to)
    return moved_to


async def _states(disk: Disk, backup: str, found: CheckedBackup) -> dict[str, bytes]:
    """The state files for the cut."""
    states = found.manifest.states
    files = load_states(disk, backup, found.state)
    if found.state != states[-1]:
        files = with_later(files, load_states(disk, backup, states[-1]))
    others = (load_states(disk, backup, each) for each in states)
    files = with_deletions(files, others, start=found.state.start, cut=found.end)
    if found.state.end <= found.end:
        return files
    ends, firsts = await _queue_ends(_log(disk, backup, found.manifest), found)

    def queue_end(topic: str, number: int, unknown: int) -> int:
        return ends.get((topic, number), firsts.get((topic, number), unknown))

    return bounded(files, cut=found.end, queue_end=queue_end)


async def _queue_ends(
    log: LogFiles, found: CheckedBackup
) -> tuple[dict[tuple[str, int], int], dict[tuple[str, int], int]]:
    """Of each queue: where it ended at the cut, and the offset of its first message behind that."""
    ends: dict[tuple[str, int], int] = {}
    firsts: dict[tuple[str, int], int] = {}
    for each in walk_entries(files_from(log, found.manifest.start), until=found.manifest.end):
        if not isinstance(each, RecordBatch):
            continue
        for name, own in each.queue_columns():
            for offset, log_offset in zip(own.queue_offsets, own.log_offsets, strict=True):
                if log_offset < found.end:
                    ends[name] = offset + own.count_of(log_offset)
                else:
                    firsts.setdefault(name, offset)
        await asyncio.sleep(0)
    return ends, firsts
