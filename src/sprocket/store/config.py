"""Settings of the store."""

from __future__ import annotations

from dataclasses import dataclass

from sprocket.base.config import setting
from sprocket.message.properties import DELAY_LEVELS

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB

#: The largest file of the log; its positions are signed 32-bit numbers in RocketMQ.
_FILE_BYTES_MAX = 2**31 - 1


@dataclass(frozen=True, slots=True)
class StoreConfig:
    """How messages are kept. File sizes must stay as they are once a store has files."""

    path: str = setting(
        "sprocket-data", "folder that a broker keeps everything in", rocketmq="storePathRootDir"
    )
    log_paths: tuple[str, ...] = setting(
        (),
        "folders of the log, which may be on several disks; commitlog below the store's if none",
        rocketmq="storePathCommitLog",
    )
    log_read_only_paths: tuple[str, ...] = setting(
        (),
        "folders of the log that get no new files",
        rocketmq="readOnlyCommitLogStorePaths",
    )
    log_file_bytes: int = setting(
        GIB,
        "size of one file of the log",
        rocketmq="mappedFileSizeCommitLog",
        minimum=4 * KIB,
        maximum=_FILE_BYTES_MAX,
    )
    queue_file_bytes: int = setting(
        300_000 * 20,
        "size of one file of a consume queue; 20 bytes an entry",
        rocketmq="mappedFileSizeConsumeQueue",
        minimum=20,
        maximum=_FILE_BYTES_MAX,
    )
    message_bytes_max: int = setting(
        4 * MIB,
        "largest body of a message",
        rocketmq="maxMessageSize",
        minimum=1,
        maximum=512 * MIB,
    )
    flush: str = setting(
        "ASYNC_FLUSH",
        "whether a send is answered before (ASYNC_FLUSH) or after (SYNC_FLUSH) it is on the disk",
        rocketmq="flushDiskType",
        choices=("ASYNC_FLUSH", "SYNC_FLUSH"),
    )
    flush_interval_ms: int = setting(
        500,
        "pause between two flushes of the log",
        rocketmq="flushIntervalCommitLog",
        minimum=1,
        maximum=60_000,
    )
    flush_least_pages: int = setting(
        0,
        "fewer pages of 4 KiB than this wait for the thorough flush of the log; 0: none wait",
        rocketmq="flushCommitLogLeastPages",
        minimum=0,
        maximum=262_144,
    )
    flush_thorough_interval_ms: int = setting(
        10_000,
        "longest time between two flushes of the log, however little there is to flush",
        rocketmq="flushCommitLogThoroughInterval",
        minimum=1,
        maximum=600_000,
    )
    queue_flush_interval_ms: int = setting(
        1000,
        "pause between two flushes of the consume queues",
        rocketmq="flushIntervalConsumeQueue",
        minimum=1,
        maximum=600_000,
    )
    disk_check_interval_ms: int = setting(
        10_000,
        "pause between two checks of the disk",
        rocketmq="cleanResourceInterval",
        minimum=100,
        maximum=600_000,
    )
    disk_full_percent: int = setting(
        90,
        "a disk as full as this refuses messages, and still allows reads",
        rocketmq="diskSpaceWarningLevelRatio",
        minimum=35,
        maximum=100,
    )
    kept_hours: int = setting(
        72,
        "how long messages are kept, in hours; then their files are removed",
        rocketmq="fileReservedTime",
        minimum=1,
        maximum=1_000_000,
    )
    log_bytes_max: int = setting(
        0,
        "most bytes of the log's files together; above it the oldest are removed, expired or not; "
        "0 for no limit",
        minimum=0,
    )
    files_removed_max: int = setting(
        10,
        "most files of the log that one check of the disk removes",
        rocketmq="deleteFileBatchMax",
        minimum=1,
        maximum=1000,
    )
    delete_hours: str = setting(
        "04",
        "hours of the day at which expired files are removed, separated by `;`",
        rocketmq="deleteWhen",
    )
    disk_used_percent: int = setting(
        75,
        "above it expired files are removed at any hour",
        rocketmq="diskMaxUsedSpaceRatio",
        minimum=10,
        maximum=95,
    )
    disk_forced_percent: int = setting(
        85,
        "above it the oldest files are removed, expired or not, consumed or not",
        rocketmq="diskSpaceCleanForciblyRatio",
        minimum=30,
        maximum=100,
    )
    may_force: bool = setting(
        True,
        "whether files may be removed before they are expired",
        rocketmq="cleanFileForciblyEnable",
    )
    index_keys: bool = setting(
        True, "whether messages can be found by key and unique id", rocketmq="messageIndexEnable"
    )
    index_slots: int = setting(
        5_000_000,
        "slots of one file of the key index; 4 bytes each",
        rocketmq="maxHashSlotNum",
        minimum=1,
        maximum=100_000_000,
    )
    index_entries: int = setting(
        20_000_000,
        "keys that one file of the key index holds; 20 bytes each",
        rocketmq="maxIndexNum",
        minimum=2,
        maximum=100_000_000,
    )
    on_damage: str = setting(
        "REFUSE",
        "what a start does with a log that is damaged before its end: refuse, so that nothing is "
        "lost silently, or cut the log there and lose the messages behind it",
        choices=("REFUSE", "CUT"),
    )
    check_bodies: bool = setting(
        True,
        "whether recovery compares each body with its checksum",
        rocketmq="checkCRCOnRecover",
    )
    timers: bool = setting(
        True,
        "whether messages may ask to be delivered at a time of their choice",
        rocketmq="timerWheelEnable",
    )
    timer_slot_ms: int = setting(
        1000,
        "width of a slot of the timers' wheel; must stay as it is while messages wait",
        rocketmq="timerPrecisionMs",
        minimum=10,
        maximum=60_000,
    )
    timer_delay_seconds_max: int = setting(
        3 * 86_400,
        "how far ahead a message may be due, in seconds",
        rocketmq="timerMaxDelaySec",
        minimum=1,
        maximum=100 * 366 * 86_400,
    )
    timer_roll_slots: int = setting(
        2 * 86_400,
        "a message due more than this many slots from now is stored again on the way to its time",
        rocketmq="timerRollWindowSlot",
        minimum=2,
        maximum=7 * 86_400 - 60,
    )
    timer_file_bytes: int = setting(
        100 * MIB,
        "size of one file of the timer log; 52 bytes a message",
        rocketmq="mappedFileSizeTimerLog",
        minimum=4 * KIB,
        maximum=_FILE_BYTES_MAX,
    )
    timer_flush_interval_ms: int = setting(
        1000,
        "pause between two flushes of the timers' files",
        rocketmq="timerFlushIntervalMs",
        minimum=10,
        maximum=600_000,
    )
    delay_levels: str = setting(
        DELAY_LEVELS,
        "the delays that messages can ask for by level, from level 1",
        rocketmq="messageDelayLevel",
    )
