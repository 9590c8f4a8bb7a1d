"""Opens a store whose parts are there: recovers it, and lets messages in."""

from __future__ import annotations

import logging
from collections.abc import Callable

from sprocket.base.errors import DamagedLog, DiskFull
from sprocket.base.ports import Disk
from sprocket.store.config import StoreConfig
from sprocket.store.log.segments import is_no_room
from sprocket.store.opening.parts import Parts
from sprocket.store.opening.recovery import Recovered, Start, recover
from sprocket.store.views.queue_ends import ends_of
from sprocket.store.views.tag_codes import TagCodes, parse_delay_levels

log = logging.getLogger(__name__)


async def bring_up(parts: Parts, disk: Disk, *, root: str, config: StoreConfig) -> None:
    """Recovers a store, and lets messages in.

    Raises:
        DamagedLog: its log is damaged, not only at its end.
        OSError: the disk failed.
    """
    abort = f"{root}/abort"
    was_stopped = disk.size(abort) is None
    try:
        _mark(disk, abort)
    except OSError as error:  # without room it is tried again before anything is appended
        if not is_no_room(error):
            raise
    try:
        recovered = await _recovered(parts, root=root, config=config, was_stopped=was_stopped)
    except DamagedLog as damage:
        if was_stopped:
            disk.remove(abort)
        raise DamagedLog(
            f"{damage}. Look with `sprocket store verify {root}`, choose with "
            "`sprocket store repair`, or set store.on_damage to CUT to lose what lies behind"
        ) from None
    for view in parts.views:
        for _ in view.follow(parts.log.start):
            pass
    parts.appending.newest_ms = max(recovered.stored_ms, parts.checkpoint.log_ms)
    if not was_stopped or recovered.records:
        log.warning(
            "recovered %s: replayed %d records from log offset %d, the log ends at %d",
            root, recovered.records, recovered.replayed_from, parts.log.end,
        )  # fmt: skip
    await parts.log.sync(recovered.replayed_from, parts.log.end)
    parts.flush.has_flushed(parts.log.end)
    parts.checkpoint.log_ms = parts.appending.newest_ms
    is_shorter = parts.ends.log_end > parts.log.end
    await parts.flush.sync_views(is_thorough=is_shorter)
    if is_shorter:
        parts.ends.save(ends_of(parts.queues.by_name), log_end=parts.log.end)

    def before_taking() -> None:
        _mark(disk, abort)
        parts.deleted.lower(parts.log.end)

    _let_in(parts, before_taking)


def _mark(disk: Disk, abort: str) -> None:
    """Makes the file that is there while a store is open.

    Raises:
        OSError: the disk refuses it.
    """
    if disk.size(abort) is None:
        disk.replace(abort, b"0", backup=False)


def _let_in(parts: Parts, before_taking: Callable[[], None]) -> None:
    """Lets messages in; not yet if the disk has no room for what must be noted before.

    Raises:
        OSError: the disk refuses it for another reason.
    """
    parts.room.before_taking = before_taking
    try:
        before_taking()
    except OSError as error:
        if not is_no_room(error):
            raise
        parts.appending.refusal = DiskFull(f"the broker's disk is full: {error}")
        log.error("%s; messages are taken once there is room", parts.appending.refusal)
        return
    parts.appending.refusal = None
    parts.room.look()


async def _recovered(
    parts: Parts, *, root: str, config: StoreConfig, was_stopped: bool
) -> Recovered:
    """Brings log and views to their common end; builds the views anew if some are missing."""
    flushed = parts.checkpoint.flushed or 0
    #: Without marks of ours Java was here, and may have deleted topics: what we noted is too old.
    has_marks = parts.checkpoint.replay_from is not None
    how = Start(
        was_stopped=was_stopped,
        checks_bodies=config.check_bodies,
        cuts_damage=config.on_damage == "CUT",
        deleted=parts.deleted.end_of,
    )
    tag_codes = TagCodes(parse_delay_levels(config.delay_levels))
    queues = parts.queues.by_name
    lacking = parts.ends.missing(queues, parts.deleted) if has_marks else None
    if lacking is None:
        recovered = await recover(parts.log, parts.views, parts.checkpoint, tag_codes, how)
        parts.queues.remove_deleted(parts.deleted.end_of)
        if has_marks:
            lacking = parts.ends.shorter(queues, parts.deleted, log_end=parts.log.end)
        if parts.log.end < flushed:
            log.error(
                "%s: the log was on the disk up to %d and ends at %d: messages are lost",
                root, flushed, parts.log.end,
            )  # fmt: skip
        if lacking is None:
            return recovered
    log.error("%s: %s; all queues are built anew from the log", root, lacking)
    how = how._replace(from_beginning=True)
    recovered = await recover(parts.log, parts.views, parts.checkpoint, tag_codes, how)
    parts.queues.remove_deleted(parts.deleted.end_of)
    # The log has nothing of these left, and their next message must not get an offset again.
    for topic, number, end in list(parts.ends.expired(queues, parts.deleted)):
        parts.queues.make(topic, number).begin_at(end)
    return recovered
