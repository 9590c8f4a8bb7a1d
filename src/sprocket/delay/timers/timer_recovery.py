"""Brings the files of the timers to a state to go on from.

- After an orderly stop they are taken as they are.
- After a crash the timer log is cut to where it was on the disk for sure, and the wheel is made
  anew from it; the messages behind go on the wheel once more.
- What Java left is taken as far as its timer log is whole.
- Without a timer log everything goes on the wheel once more that is not known to be done, and
  without any files everything that the log does not show as delivered.
"""

from __future__ import annotations

import logging
from typing import NamedTuple

from sprocket.base.errors import CorruptRecord, OffsetOutOfRange
from sprocket.delay.timers.counts import Counts
from sprocket.delay.timers.lookback import (
    Delivered,
    file_stored_before,
    look_back,
    origins_of_copies,
)
from sprocket.delay.timers.timed import QUEUE
from sprocket.delay.timers.timer_check import Progress
from sprocket.delay.timers.timer_files import TimerFiles
from sprocket.delay.timers.timer_log import Unit
from sprocket.message.record import parse
from sprocket.message.topic import TIMER
from sprocket.store.store import Store

log = logging.getLogger(__name__)


class Recovered(NamedTuple):
    """Where the timers go on.

    Attributes:
        progress: how far they are.
        done_before: messages before that one are done if their slot is before `progress.slot_ms`.
        delivered: what the log shows.
    """

    progress: Progress
    done_before: int
    delivered: Delivered


async def recover(
    files: TimerFiles, store: Store, counts: Counts, *, now_ms: int, log_file_bytes: int
) -> Recovered:
    """Brings the files to a state to go on from.

    Args:
        log_file_bytes: of a file of the store's log.

    Raises:
        StoreError, OSError: the disk refuses it.
    """
    told = files.check.read()
    by_key = told is None or not told.is_ours
    progress, done_before = _recovered(files, store, counts, told=told, now_ms=now_ms)
    is_again = told is None or progress.queue_next < told.queue_next
    begin = progress.delivered_from
    if told is not None and not told.is_ours:
        begin = file_stored_before(store, told.slot_ms, file_bytes=log_file_bytes)
    delivered = await look_back(store, begin, by_key=by_key)
    queue_next = min(
        max(progress.queue_next, store.min_offset(TIMER, QUEUE)), store.max_offset(TIMER, QUEUE)
    )
    if told is None or not told.is_clean:
        log.warning(
            "timers go on with slot %d and message %d of %d; %d deliveries are known from the log",
            progress.slot_ms, queue_next, store.max_offset(TIMER, QUEUE), len(delivered),
        )  # fmt: skip
    if is_again:  # copies from before what was looked through
        delivered.origins |= await origins_of_copies(store, queue_next)
    return Recovered(progress._replace(queue_next=queue_next), done_before, delivered)


def _recovered(
    files: TimerFiles, store: Store, counts: Counts, *, told: Progress | None, now_ms: int
) -> tuple[Progress, int]:
    # From most to least knowledge: a clean stop needs nothing. After a crash the wheel is built
    # from the timer log, because slots were written in place and may be torn. Without the log, or
    # with a hole in it, all messages of the topic go on the wheel once more, and deliveries that
    # the store's log shows are passed over.
    width_ms = files.wheel.width_ms
    queue_min = store.min_offset(TIMER, QUEUE)
    if told is None:
        files.log.cut(0)
        files.rebuild(0, counts, now_ms)
        slot_ms = now_ms // width_ms * width_ms
        return Progress(slot_ms, 0, queue_min, store.log_start, queue_min), 0
    told = told._replace(slot_ms=told.slot_ms // width_ms * width_ms)
    if not told.is_ours:
        last = files.rebuild(told.slot_ms, counts, now_ms)
        queue_next = max(told.queue_next, _queue_offset(store, last) + 1)
        return told._replace(position=files.log.end, queue_next=queue_next), 0
    if told.position > files.log.limit:
        log.warning("the timer log is gone: what waits goes on the wheel once more")
        files.log.cut(0)
        files.rebuild(0, counts, now_ms)
        return told._replace(position=0, queue_next=queue_min), told.queue_then
    if told.is_clean and files.had_wheel:
        files.log.end = told.position
        return told, 0
    files.log.cut(told.position)
    files.rebuild(told.slot_ms, counts, now_ms)
    if files.log.end < told.position:
        log.error("the timer log has a hole: what waits goes on the wheel once more")
        files.log.cut(0)
        files.rebuild(0, counts, now_ms)
        return told._replace(position=0, queue_next=queue_min), told.queue_then
    return told, 0


def _queue_offset(store: Store, unit: Unit | None) -> int:
    """The queue offset of a unit's message; -1 if that is gone."""
    if unit is None:
        return -1
    try:
        record = parse(store.lookup(unit.log_offset))
    except (OffsetOutOfRange, CorruptRecord):
        return -1
    return record.queue_offset if record.topic == TIMER else -1
