"""The settings of a store."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sprocket.base import setting_forms as forms
from sprocket.base.config import Conflict, setting
from sprocket.message.properties import DELAY_LEVELS

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB

#: What an error of a file of a store ends with.
FOLDER_SETTINGS = "the folders are the settings storePathRootDir and storePathCommitLog"

#: The largest file of the log: RocketMQ keeps positions in a file as signed 32-bit numbers.
_FILE_BYTES_MAX = 2**31 - 1


@dataclass(frozen=True, slots=True)
class StoreConfig:
    """Settings of a store. File sizes must not change once a store has files."""

    path: str = setting(
        "sprocket-data",
        "Folder of all files of a broker.",
        rocketmq="storePathRootDir",
        form=forms.folder,
    )
    log_paths: tuple[str, ...] = setting(
        (),
        "Folders of the log, which may be on several disks; by default `commitlog` in the store's "
        "folder.",
        rocketmq="storePathCommitLog",
        form=forms.folders,
    )
    log_read_only_paths: tuple[str, ...] = setting(
        (),
        "Folders of the log in which no new files are created.",
        rocketmq="readOnlyCommitLogStorePaths",
        form=forms.folders,
    )
    log_file_bytes: int = setting(
        GIB,
        "Size of one file of the log.",
        rocketmq="mappedFileSizeCommitLog mapedFileSizeCommitLog",
        minimum=4 * KIB,
        maximum=_FILE_BYTES_MAX,
    )
    queue_file_bytes: int = setting(
        300_000 * 20,
        "Size of one file of a consume queue; 20 bytes per entry.",
        rocketmq="mappedFileSizeConsumeQueue mapedFileSizeConsumeQueue",
        form=forms.whole_entries,
        minimum=20,
        maximum=_FILE_BYTES_MAX,
    )
    batch_queue_file_bytes: int = setting(
        300_000 * 46,
        "Size of a file of a batch queue; rounded up to whole units.",
        rocketmq="mapperFileSizeBatchConsumeQueue",
        minimum=46,
        maximum=1 << 31,
    )
    message_bytes_max: int = setting(
        4 * MIB,
        "Largest body of a message.",
        rocketmq="maxMessageSize",
        minimum=1,
        maximum=512 * MIB,
    )
    flush: str = setting(
        "ASYNC_FLUSH",
        "Whether a send is answered before (ASYNC_FLUSH) or after (SYNC_FLUSH) it is on the disk.",
        rocketmq="flushDiskType",
        choices=("ASYNC_FLUSH", "SYNC_FLUSH"),
    )
    flush_interval_ms: int = setting(
        500,
        "Pause between two flushes of the log.",
        rocketmq="flushIntervalCommitLog",
        minimum=1,
        maximum=60_000,
    )
    flush_least_pages: int = setting(
        0,
        "Fewer unflushed pages of 4 KiB than this wait for the thorough flush; 0: none waits.",
        rocketmq="flushCommitLogLeastPages",
        minimum=0,
        maximum=262_144,
    )
    flush_thorough_interval_ms: int = setting(
        10_000,
        "Pause between two thorough flushes, which flush any number of pages of the log.",
        rocketmq="flushCommitLogThoroughInterval",
        minimum=1,
        maximum=600_000,
    )
    queue_flush_interval_ms: int = setting(
        1000,
        "Pause between two flushes of the consume queues.",
        rocketmq="flushIntervalConsumeQueue",
        minimum=1,
        maximum=600_000,
    )
    disk_check_interval_ms: int = setting(
        10_000,
        "Pause between two checks of how full the disk is.",
        rocketmq="cleanResourceInterval",
        minimum=100,
        maximum=600_000,
    )
    disk_full_percent: int = setting(
        90,
        "Percent of the disk from which on messages are refused; reads still work.",
        rocketmq="diskSpaceWarningLevelRatio",
        minimum=35,
        maximum=100,
        is_clamped=True,
    )
    kept_hours: int = setting(
        72,
        "How long messages are kept, in hours; then their files expire and are deleted.",
        rocketmq="fileReservedTime",
        minimum=1,
        maximum=1_000_000,
    )
    log_bytes_max: int = setting(
        0,
        "Bytes of all files of the log; above it the oldest files are deleted, expired or not; 0: "
        "no limit.",
        minimum=0,
    )
    files_removed_max: int = setting(
        10,
        "Files of the log that one check of the disk deletes at most.",
        rocketmq="deleteFileBatchMax",
        minimum=1,
        maximum=1000,
    )
    delete_hours: str = setting(
        "04",
        "Hours of the day at which expired files are deleted, separated by `;`.",
        rocketmq="deleteWhen",
        form=forms.hours,
    )
    disk_used_percent: int = setting(
        75,
        "Percent of the disk above which expired files are deleted at any hour.",
        rocketmq="diskMaxUsedSpaceRatio",
        minimum=10,
        maximum=95,
        is_clamped=True,
    )
    disk_forced_percent: int = setting(
        85,
        "Percent of the disk above which the oldest files are deleted, expired or not, consumed or "
        "not.",
        rocketmq="diskSpaceCleanForciblyRatio",
        minimum=30,
        maximum=100,
        is_clamped=True,
    )
    may_force: bool = setting(
        True,
        "Whether files may be deleted before they expire.",
        rocketmq="cleanFileForciblyEnable",
    )
    read_ahead: bool = setting(
        True,
        "Whether the system reads more of the log's files than is asked for. Without it, scattered "
        "reads of old messages read less from the disk.",
        rocketmq="dataReadAheadEnable",
    )
    index_keys: bool = setting(
        True, "Whether messages can be found by key and unique id.", rocketmq="messageIndexEnable"
    )
    index_slots: int = setting(
        5_000_000,
        "Slots of one file of the key index; 4 bytes each.",
        rocketmq="maxHashSlotNum",
        minimum=1,
        maximum=100_000_000,
    )
    index_entries: int = setting(
        20_000_000,
        "Keys in one file of the key index; 20 bytes each.",
        rocketmq="maxIndexNum",
        minimum=2,
        maximum=100_000_000,
    )
    on_damage: str = setting(
        "REFUSE",
        "What a start does with a log that is damaged before its end, or gone: `REFUSE` to start, "
        "so that no message is lost unnoticed, or `CUT` the log and lose the messages behind.",
        choices=("REFUSE", "CUT"),
    )
    check_bodies: bool = setting(
        True,
        "Whether recovery compares each body with its checksum.",
        rocketmq="checkCRCOnRecover",
    )
    timers: bool = setting(
        True,
        "Whether messages may ask for a delay or a delivery time of their own.",
        rocketmq="timerWheelEnable",
    )
    timer_slot_ms: int = setting(
        1000,
        "Width of a slot of the timer wheel; must not change while messages wait.",
        rocketmq="timerPrecisionMs",
        minimum=10,
        maximum=60_000,
    )
    timer_delay_seconds_max: int = setting(
        3 * 86_400,
        "How far ahead a message may be due, in seconds.",
        rocketmq="timerMaxDelaySec",
        minimum=1,
        maximum=100 * 366 * 86_400,
    )
    timer_roll_slots: int = setting(
        2 * 86_400,
        "Messages that are due in more slots than this are stored again on the way.",
        rocketmq="timerRollWindowSlot",
        minimum=2,
        maximum=7 * 86_400 - 60,
    )
    timer_file_bytes: int = setting(
        100 * MIB,
        "Size of one file of the timer log; 52 bytes per message.",
        rocketmq="mappedFileSizeTimerLog",
        minimum=4 * KIB,
        maximum=_FILE_BYTES_MAX,
    )
    timer_flush_interval_ms: int = setting(
        1000,
        "Pause between two flushes of the timers' files.",
        rocketmq="timerFlushIntervalMs",
        minimum=10,
        maximum=600_000,
    )
    delay_levels: str = setting(
        DELAY_LEVELS,
        "The delays that messages can ask for by level, from level 1.",
        rocketmq="messageDelayLevel",
        form=forms.delays,
    )

    def conflicts(self) -> Iterator[Conflict]:
        """What is wrong with the settings together."""
        named = [path.rstrip("/") for path in self.log_paths]
        read_only = {path.rstrip("/") for path in self.log_read_only_paths}
        names = ("log_paths", "log_read_only_paths")
        if len(set(named)) < len(named):
            yield Conflict(names[:1], f"names a folder twice: {', '.join(named)}")
        if named and read_only.issuperset(named):
            yield Conflict(names, "names no folder that is not read-only")
