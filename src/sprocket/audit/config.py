"""The settings of the audit log, for brokers and name servers.

RocketMQ has none, so the names for its files are made as its others are (`auditLogEnable` like
`traceTopicEnable`, `auditLogFileSize` like `mappedFileSizeCommitLog`).
"""

from __future__ import annotations

from dataclasses import dataclass

from sprocket.base import setting_forms as forms
from sprocket.base.config import setting


@dataclass(frozen=True, slots=True)
class AuditConfig:
    """Settings of the audit log."""

    enabled: bool = setting(
        False,
        "Whether requests that change something (topics, groups, users, offsets, settings, roles) "
        "are recorded: who asked, for what, with which result.",
        rocketmq="auditLogEnable",
    )
    path: str | None = setting(
        None,
        "Folder of the files; a broker writes to `broker` in it, a name server to `nameserver`. By "
        "default `audit` beside the server's other files.",
        rocketmq="auditLogPath",
        form=forms.folder,
    )
    file_bytes: int = setting(
        16 << 20,
        "Size at which a file is closed and the next one begins.",
        rocketmq="auditLogFileSize",
        minimum=64 << 10,
    )
    files_max: int = setting(
        16,
        "Files that are kept; the oldest one is removed.",
        rocketmq="auditLogFileNums",
        minimum=2,
        maximum=10_000,
    )
