"""The settings of the audit log, in a file of RocketMQ's form."""

from __future__ import annotations

from sprocket.audit.config import AuditConfig
from sprocket.base.config_files import ConfigFile, load


def test_they_are_read_from_a_broker_conf() -> None:
    text = (
        "auditLogEnable=true\nauditLogPath=/var/a\nauditLogFileSize=1048576\nauditLogFileNums=3\n"
    )
    found = load([AuditConfig], file=ConfigFile("broker.conf", text)).of(AuditConfig)
    assert found == AuditConfig(enabled=True, path="/var/a", file_bytes=1 << 20, files_max=3)
