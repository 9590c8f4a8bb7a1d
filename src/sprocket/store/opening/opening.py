"""Opens a store whose parts are made: reads its files, recovers it, and accepts messages."""

from __future__ import annotations

import logging

from sprocket.base.errors import DamagedLog, StoreError
from sprocket.store.config import StoreConfig
from sprocket.store.log.segments import is_no_room
from sprocket.store.opening.mended_records import MendedRecords
from sprocket.store.opening.parts import StoreParts
from sprocket.store.opening.recovery import OpenMode, RecoveredStore, recover
from sprocket.store.opening.sampled import sampled_fault
from sprocket.store.views.lite_queues import SHARED
from sprocket.store.views.tag_codes import TagCodes

logger = logging.getLogger(__name__)


async def recover_and_open(
    parts: StoreParts,
    config: StoreConfig,
    *,
    root: str,
    tag_codes: TagCodes,
    cut_at: int | None = None,
) -> None:
    """Reads a store's files, recovers it, and accepts messages.

    Args:
        cut_at: the messages from this log offset on are dropped, because the master of this copy
            has others there; None to keep all.

    Raises:
        ConfigError: its files were made with other sizes.
        DamagedLog: its log is damaged, not only at its end.
        StoreError: a file has invalid content.
        OSError: the disk failed.
    """
    # This order makes a crash during a start harmless: the abort file exists before anything is
    # changed, the log is synced before the views that were built from it, and messages are accepted
    # last, when the file of deleted topics agrees with the log's new end.
    parts.load()
    was_stopped = not parts.abort.exists()
    _check_log(parts, config, root=root, was_stopped=was_stopped)
    try:
        parts.abort.create()
    except OSError as error:  # if the disk is full, it is tried again before the first append
        if not is_no_room(error):
            raise
    if cut_at is not None and cut_at < parts.log.segments.limit:
        await _cut(parts, cut_at, was_stopped=was_stopped)
        was_stopped = False
    try:
        recovered = await _recovered(
            parts, root=root, config=config, tag_codes=tag_codes, was_stopped=was_stopped
        )
    except DamagedLog as damage:
        if was_stopped:
            parts.abort.remove()
        raise DamagedLog(
            f"{damage}. Check with `sprocket store verify {root}`, mend with "
            "`sprocket store repair`, or set store.on_damage to CUT to lose all messages behind it"
        ) from None
    for view in parts.views:
        for _ in view.trim(parts.log.start):
            pass
    if not was_stopped or recovered.records:
        logger.warning(
            "recovered %s: replayed %d records from log offset %d, the log ends at %d",
            root, recovered.records, recovered.replayed_from, parts.log.end,
        )  # fmt: skip
    # What was cleared behind the end is on the disk before anything is written there: else a loss
    # of power could bring old records back behind new ones.
    await parts.log.sync(recovered.replayed_from, parts.log.end + (not was_stopped))
    parts.flush.begin(max(recovered.stored_ms, parts.checkpoint.log_ms))
    is_shorter = parts.ends.log_end > parts.log.end
    confirmed = parts.checkpoint.bound_confirmed(int(parts.log.start), parts.log.end)
    parts.replica.begin(parts.safe, confirmed=confirmed if parts.is_member else None)
    await parts.flush.sync_views(is_thorough=is_shorter)
    if is_shorter:
        parts.ends.save(parts.ends.note(parts.log.end))
    parts.disk_space.begin()


# The checkpoint and the queues' ends go first: after a crash in between, the next start would take
# a log that lacks what the checkpoint says was on the disk for damaged, and have queues continue
# behind messages that are gone. The tail is whole then, and is kept.
async def _cut(parts: StoreParts, cut_at: int, *, was_stopped: bool) -> None:
    """Drops the tail of the log, and has the views read again what is left of it.

    Raises:
        OSError: the disk failed.
    """
    log, end = parts.log, max(cut_at, parts.log.start)
    synced = log.segments.limit if was_stopped else log.start
    await parts.checkpoint.save_for_cut(end, synced=synced)
    parts.ends.save_for_cut(end)
    log.cut(end, is_torn=True)
    logger.warning("the log is cut at %d: its master has something else behind it", end)


def _check_log(parts: StoreParts, config: StoreConfig, *, root: str, was_stopped: bool) -> None:
    """Refuses a log without files that had messages: its folders are probably other ones.

    Raises:
        StoreError: names the settings, and how to begin without these messages.
    """
    # A folder to which only state files were copied had no messages. After a loss of power right
    # behind a first start, queues may have files that the log lost, and no checkpoint.
    checkpoint, log = parts.checkpoint, parts.log
    has_marks = checkpoint.replay_from is not None
    had_messages = bool(checkpoint.flushed) or (not has_marks and checkpoint.log_ms > 0)
    if was_stopped and not has_marks:
        had_messages = had_messages or any(
            queue.has_files for queue in parts.queues.by_name.values()
        )
    if log.segments.starts or not had_messages:
        return
    lost = (
        f"checkpoint and queues in {root} show that there were messages, and there is no file of "
        f"the log in {', '.join(log.folders)}"
    )
    if config.on_damage != "CUT":
        raise StoreError(
            f"{lost}: do `log_paths` (storePathCommitLog) and `path` (storePathRootDir) name the "
            "folders it is in? To begin without these messages, start with on_damage = CUT"
        )
    logger.error("%s; as store.on_damage is CUT, the start continues without them", lost)


def _damaged_files(parts: StoreParts) -> str | None:
    """Describes a file of the views that is cut or missing; None if there is no such file."""
    odd = parts.queues.odd
    if odd:
        return f"{odd[0].path} is cut: it has {odd[0].size} bytes"
    if parts.lite.odd:
        return f"{parts.lite.odd[0].path} is cut: it has {parts.lite.odd[0].size} bytes"
    if parts.queues.misplaced is not None:
        return f"{parts.queues.misplaced} is of a topic whose queues are of another kind"
    if parts.index not in parts.views:
        return None
    return parts.index.lacks(parts.ends.index_files, parts.log.start)


async def _forget_views(parts: StoreParts) -> None:
    """Removes what is damaged, after the checkpoint has the next start read the whole log.

    Raises:
        OSError: the disk failed.
    """
    await parts.checkpoint.save_for_replay(parts.log.start)
    parts.queues.drop_odd()
    parts.lite.drop_odd()
    parts.index.clear()


async def _recovered(
    parts: StoreParts, *, root: str, config: StoreConfig, tag_codes: TagCodes, was_stopped: bool
) -> RecoveredStore:
    """Brings log and views to their common end; rebuilds the views if some are missing."""
    # Files of queues can be missing, or hold too few entries. Only `queueEnds.json` shows it,
    # before recovery (files) or after it (entries). Then the views are built from the whole log,
    # because the offset of a message must never be given to another one.
    flushed = parts.checkpoint.flushed or 0
    # A checkpoint without our fields shows that Java has used the store. It may have deleted
    # topics, so `queueEnds.json` is too old.
    has_marks = parts.checkpoint.replay_from is not None
    how = OpenMode(
        was_stopped=was_stopped,
        checks_bodies=config.check_bodies,
        cuts_damage=config.on_damage == "CUT",
        deleted=parts.deleted.end_of,
        mend=MendedRecords(parts.log, parts.queues).mend,
    )
    lacking = parts.ends.missing(parts.deleted) if has_marks else None
    lacking = lacking or _damaged_files(parts)
    if lacking is None:
        recovered = await recover(parts.log, parts.views, parts.checkpoint, tag_codes, how)
        parts.queues.remove_deleted(parts.deleted.end_of)
        if has_marks:
            lacking = parts.ends.shorter(parts.deleted, log_end=parts.log.end)
        if lacking is None and was_stopped:
            lacking = sampled_fault(parts)
            parts.log.segments.unmap_others(parts.log.base)
        if parts.log.end < flushed:
            logger.error(
                "%s: the log was on the disk up to %d and now ends at %d: messages are lost",
                root, flushed, parts.log.end,
            )  # fmt: skip
        if lacking is None:
            return recovered
    logger.warning("%s: %s; queues and key index are rebuilt from the log", root, lacking)
    await _forget_views(parts)
    how = how._replace(from_beginning=True)
    recovered = await recover(parts.log, parts.views, parts.checkpoint, tag_codes, how)
    parts.queues.remove_deleted(parts.deleted.end_of)
    # The log has no messages of these queues left. They continue where they ended, so that no
    # offset is given twice.
    for topic, number, end in list(parts.ends.expired(parts.deleted)):
        queue = parts.lite.shared if topic == SHARED else parts.queues.make(topic, number)
        queue.begin_at(end)
    return recovered
