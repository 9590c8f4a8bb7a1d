"""Recovers the files of the timers when the broker starts.

- After an orderly stop the files are used as they are.
- After a crash the timer log is cut at the position that is certainly on the disk, and the wheel is
  built from it; later messages of the topic are put on the wheel again.
- Files of Java's broker are used as far as their timer log is whole.
- Without a timer log, all messages are put on the wheel again that are not known to be done;
  without any files, all that the commit log does not show as delivered.
"""

from __future__ import annotations

import logging
from typing import NamedTuple

from sprocket.base.errors import CorruptRecord, OffsetOutOfRange
from sprocket.delay.timers.counts import Counts
from sprocket.delay.timers.delivery_history import (
    DeliveryHistory,
    file_stored_before,
    origins_of_copies,
    read_history,
)
from sprocket.delay.timers.timed import QUEUE
from sprocket.delay.timers.timer_check import TimerProgress
from sprocket.delay.timers.timer_files import TimerFiles
from sprocket.delay.timers.timer_log import TimerUnit
from sprocket.message.record import parse
from sprocket.message.topic import TIMER
from sprocket.store.store import Store

logger = logging.getLogger(__name__)


class RecoveredTimers(NamedTuple):
    """The state from which the timers continue.

    Attributes:
        progress: their progress.
        done_before: messages with a smaller queue offset are done if their slot is before
            `progress.slot_ms`.
        history: messages that the log shows as delivered.
        replaced: log offsets of messages that were rolled by somebody else.
    """

    progress: TimerProgress
    done_before: int
    history: DeliveryHistory
    replaced: set[int]


async def recover(
    files: TimerFiles, store: Store, counts: Counts, *, now_ms: int, log_file_bytes: int
) -> RecoveredTimers:
    """Recovers the files.

    Args:
        files: the open files.
        store: the store.
        counts: gets the numbers of the messages on the wheel.
        now_ms: the present time.
        log_file_bytes: size of a file of the commit log.

    Raises:
        StoreError, OSError: the disk refuses it.
    """
    saved = files.check.read()
    if saved is not None and saved.delivered_from > store.log_end:  # the log was cut since
        saved = None
    by_key = saved is None or not saved.is_ours
    progress, done_before = _recovered(files, store, counts, saved=saved, now_ms=now_ms)
    is_again = saved is None or progress.queue_next < saved.queue_next
    begin = progress.delivered_from
    if saved is not None and not saved.is_ours:
        begin = file_stored_before(store, saved.slot_ms, file_bytes=log_file_bytes)
    history = await read_history(store, begin, by_key=by_key)
    end = store.stored.max_offset(TIMER, QUEUE)
    queue_next = min(max(progress.queue_next, store.min_offset(TIMER, QUEUE)), end)
    if saved is None or not saved.is_clean:
        logger.warning(
            "timers continue at slot %d and message %d of %d; the log shows %d deliveries",
            progress.slot_ms, queue_next, end, len(history),
        )  # fmt: skip
    if is_again:  # the scan above begins behind some copies
        history.origins |= await origins_of_copies(store, queue_next)
    replaced = set[int]()
    if saved is not None and saved.has_replaced:
        replaced = await origins_of_copies(store, store.min_offset(TIMER, QUEUE))
    progress = progress._replace(queue_next=queue_next)
    return RecoveredTimers(progress, done_before, history, replaced)


# The cases are in the order of what is lost: no checkpoint, one of Java, no timer log, nothing, and
# the end of the timer log. Only the checkpoint says which part of that is on the disk. What is lost
# is read from the topic again, and the scan in `recover` finds what was delivered of it.
def _recovered(
    files: TimerFiles, store: Store, counts: Counts, *, saved: TimerProgress | None, now_ms: int
) -> tuple[TimerProgress, int]:
    # From most to least knowledge: a clean stop needs nothing. After a crash the wheel is built
    # from the timer log, because slots were written in place and may be torn. Without the log, or
    # with a hole in it, all messages of the topic go on the wheel once more, and deliveries that
    # the store's log shows are passed over.
    width_ms = files.wheel.width_ms
    queue_min = store.min_offset(TIMER, QUEUE)
    if saved is None:
        files.log.cut(0)
        files.rebuild(0, counts, now_ms)
        slot_ms = now_ms // width_ms * width_ms
        return TimerProgress(slot_ms, 0, queue_min, store.log_start, queue_min), 0
    saved = saved._replace(slot_ms=saved.slot_ms // width_ms * width_ms)
    if not saved.is_ours:
        last = files.rebuild(saved.slot_ms, counts, now_ms)
        queue_next = max(saved.queue_next, queue_offset_of(store, last) + 1)
        return saved._replace(position=files.log.end, queue_next=queue_next), 0
    if saved.position > files.log.limit:
        logger.warning("the timer log is gone: messages that wait are put on the wheel again")
        files.log.cut(0)
        files.rebuild(0, counts, now_ms)
        return saved._replace(position=0, queue_next=queue_min), saved.queue_then
    if saved.is_clean and files.had_wheel:
        files.log.end = saved.position
        return saved, 0
    files.log.cut(saved.position)
    files.rebuild(saved.slot_ms, counts, now_ms)
    if files.log.end < saved.position:
        logger.error("the timer log has a hole: messages that wait are put on the wheel again")
        files.log.cut(0)
        files.rebuild(0, counts, now_ms)
        return saved._replace(position=0, queue_next=queue_min), saved.queue_then
    return saved, 0


def queue_offset_of(store: Store, unit: TimerUnit | None) -> int:
    """The queue offset of a unit's message; -1 if its record is gone."""
    if unit is None:
        return -1
    try:
        record = parse(store.lookup(unit.log_offset))
    except (OffsetOutOfRange, CorruptRecord):
        return -1
    return record.queue_offset if record.topic == TIMER else -1
