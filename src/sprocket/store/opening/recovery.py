"""Recovery: finds the end of the log and brings the views to it.

1. The checkpoint gives the log offset up to which everything was on the disk. The views drop what
   they know of later records, and the replay starts there. If no whole record begins there, it
   starts behind the newest record that the views still know. If that one is damaged, it starts with
   the file that holds it, or with an earlier one.
2. From there on every record is checked, and put into the views, many at a time.
3. The log ends at the first place where no whole record begins that carries its own log offset.
   Everything behind it is cleared.

`whole` decides whether a record is whole. `damage` decides whether that end is the end of the log
or a broken place in its middle.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import NamedTuple

from sprocket.base.errors import DamagedLog
from sprocket.store.log.commit_log import CommitLog
from sprocket.store.log.damage import Damage, KnownFlushed, damage_at, missing_file
from sprocket.store.state.checkpoint import Checkpoint
from sprocket.store.views.record_batch import RecordBatch
from sprocket.store.views.replay import after_blank, replayed, whole_record
from sprocket.store.views.tag_codes import TagCodes
from sprocket.store.views.view import View

logger = logging.getLogger(__name__)


class OpenMode(NamedTuple):
    """How a store is opened.

    Attributes:
        was_stopped: it was closed in order the last time.
        checks_bodies: each body is compared with its checksum.
        cuts_damage: a damaged log is cut there, and the messages behind it are lost.
        deleted: gives the log offset before which a topic's records are deleted; 0 if none are.
        mend: corrects records before the views receive them.
        from_beginning: the views cannot be used, and are built from the whole log.
    """

    was_stopped: bool
    checks_bodies: bool = True
    cuts_damage: bool = False
    deleted: Callable[[str], int] = lambda topic: 0
    mend: Callable[[RecordBatch], None] = lambda batch: None
    from_beginning: bool = False


class RecoveredStore(NamedTuple):
    """What recovery did.

    Attributes:
        replayed_from: log offset where the replay started.
        records: how many records were replayed.
        stored_ms: when the last of them was stored; 0 if there was none.
    """

    replayed_from: int
    records: int
    stored_ms: int


async def recover(
    log: CommitLog,
    views: Sequence[View],
    checkpoint: Checkpoint,
    tag_codes: TagCodes,
    how: OpenMode,
) -> RecoveredStore:
    """Brings log and views to their common end.

    Raises:
        DamagedLog: a part that had been on the disk is damaged, and messages follow it.
    """
    # Damage is searched for twice: missing files before the replay, which starts behind them; and a
    # broken place afterwards, where the replay ended. The log is cut only after both.
    known = KnownFlushed.of(checkpoint, limit=log.segments.limit, was_stopped=how.was_stopped)
    if how.from_beginning:
        start = _forget_from(log.start, views)
    else:
        start = _replay_start(log, views, checkpoint, was_stopped=how.was_stopped)
    _log_damage(missing_file(log, start), how)
    log.set_end(log.segments.limit)
    count = stored_ms = 0
    end = start
    for batch in replayed(log, start, tag_codes, checks_bodies=how.checks_bodies):
        batch.leave_out(how.deleted)
        how.mend(batch)
        for view in views:
            view.apply_batch(batch)
        end, stored_ms = batch.end, batch.stored_ms
        count += batch.count
        await asyncio.sleep(0)
    end = after_blank(log, end)
    _log_damage(damage_at(log, end, known), how)
    log.cut(end, is_torn=not how.was_stopped)
    return RecoveredStore(start, count, stored_ms)


def _log_damage(damage: Damage | None, how: OpenMode) -> None:
    if damage is None:
        return
    if not how.cuts_damage:
        raise DamagedLog(str(damage))
    logger.error("%s; as store.on_damage is CUT, the start continues with what is left", damage)


# The checkpoint gives an offset up to which views and log are on the disk. The record there proves
# it: after a loss of power a checkpoint can be newer than the log. If no whole record begins there,
# the newest one that a view knows is tried, and then the files before it, one at a time.
def _replay_start(
    log: CommitLog, views: Sequence[View], checkpoint: Checkpoint, *, was_stopped: bool
) -> int:
    """The log offset where the replay starts; the views drop what they know of later records."""
    limit = log.segments.limit
    safe = checkpoint.replay_from
    if safe is None:
        safe = limit if was_stopped else _file_before(log, checkpoint.safe_ms)
    elif safe < log.start and safe % log.segments.file_bytes == 0:
        return _forget_from(safe, views)  # that file was new, and neither it nor later ones synced
    safe = max(min(safe, limit), log.start)
    newest = min(view.cut(safe, is_torn=not was_stopped) for view in views)
    if newest < log.start:
        return _forget_from(log.start, views)
    if whole_record(log, safe, checks_body=True) is not None:
        return safe
    record = whole_record(log, newest, checks_body=True)
    if record is not None:
        return newest + record.size
    start = newest - newest % log.segments.file_bytes
    while start > log.start and whole_record(log, start, checks_body=True) is None:
        start -= log.segments.file_bytes
    return _forget_from(max(start, log.start), views)


def _forget_from(start: int, views: Sequence[View]) -> int:
    for view in views:
        view.cut(start, is_torn=True)
    return start


def _file_before(log: CommitLog, safe_ms: int) -> int:
    """Log offset of the last file whose first record was stored at or before a time."""
    for start in reversed(log.segments.starts):
        record = whole_record(log, start, checks_body=False)
        if record is not None and 0 < record.stored_ms <= safe_ms:
            return start
    return log.start
