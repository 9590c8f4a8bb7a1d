"""The settings of replication: part of a broker's, with RocketMQ's names where it has them.

With `SYNC_MASTER` a send is answered when enough slaves have the message. RocketMQ 5 counts the
master as one copy and wants one by default, which waits for nobody; here one slave is the default.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sprocket.base import setting_forms as forms
from sprocket.base.config import Conflict, setting
from sprocket.base.errors import ConfigError
from sprocket.replication.stream_start import FreshStart

SLAVE, SYNC_MASTER = "SLAVE", "SYNC_MASTER"


def _fresh_start(value: str) -> str | None:
    """`last`, `first` or a log offset."""
    try:
        FreshStart.parse(value)
    except ConfigError as error:
        return f"is wrong: {error}"
    return None


@dataclass(frozen=True, slots=True)
class ReplicaConfig:
    """Settings of replication. Times in milliseconds, sizes in bytes."""

    id: int = setting(
        0,
        "0 for the master; above 0 for a slave; not used with an elector.",
        rocketmq="brokerId",
        minimum=-1,
    )
    role: str = setting(
        "ASYNC_MASTER",
        "`SLAVE` copies a master of the same name; a master answers sends without waiting for "
        "slaves (`ASYNC_MASTER`), or when they have the message (`SYNC_MASTER`).",
        rocketmq="brokerRole",
        choices=("ASYNC_MASTER", "SYNC_MASTER", "SLAVE"),
    )
    replication_port: int = setting(
        0,
        "TCP port that slaves connect to; 0 means one above the broker's own.",
        rocketmq="haListenPort",
        minimum=0,
        maximum=65535,
    )
    replication_master: str | None = setting(
        None,
        "Where a slave copies from, `host:port`; by default as the name servers say.",
        rocketmq="haMasterAddress",
        form=forms.address,
    )
    replication_start: str = setting(
        "last",
        "Where a slave without a log begins: `last` file of the master, `first`, or the file of a "
        "log offset.",
        form=_fresh_start,
    )
    replication_heartbeat_ms: int = setting(
        5_000,
        "Master and slave send each other something at least this often.",
        rocketmq="haSendHeartbeatInterval",
        minimum=10,
        maximum=60_000,
    )
    replication_silence_ms: int = setting(
        20_000,
        "A replication connection on which nothing arrives for so long is closed.",
        rocketmq="haHousekeepingInterval",
        minimum=100,
        maximum=600_000,
    )
    replication_batch_bytes: int = setting(
        128 * 1024,
        "Bytes of the log that a slave gets at a time.",
        rocketmq="haTransferBatchSize",
        minimum=1024,
        maximum=(4 << 20) - 12,
    )
    replication_limit: bool = setting(
        False,
        "Whether `replication_bytes_per_second` counts.",
        rocketmq="haFlowControlEnable",
    )
    replication_bytes_per_second: int = setting(
        100 << 20,
        "The most bytes that one slave is sent in a second.",
        rocketmq="maxHaTransferByteInSecond",
        minimum=1024,
    )
    copies: int = setting(
        0,
        "With SYNC_MASTER, copies that a message has when its send is answered, the master's "
        "included; 0 means 2.",
        rocketmq="inSyncReplicas",
        minimum=0,
        maximum=16,
    )
    copies_min: int = setting(
        0,
        "With SYNC_MASTER, copies that must be in sync for a message to be accepted, the master's "
        "included; 0 means as many as `copies`.",
        rocketmq="minInSyncReplicas",
        minimum=0,
        maximum=16,
    )
    copies_follow_sync: bool = setting(
        False,
        "With SYNC_MASTER and without an elector, whether a send waits for no more copies than are "
        "in sync, down to `copies_min`.",
        rocketmq="enableAutoInSyncReplicas",
    )
    copies_gap_bytes: int = setting(
        256 << 20,
        "A slave that is less than this behind is in sync.",
        rocketmq="haMaxGapNotInSync",
        minimum=1024,
    )
    copies_behind_ms: int = setting(
        15_000,
        "In a group with an elector, a slave that has not caught up for so long is not in sync.",
        rocketmq="haMaxTimeSlaveNotCatchup",
        minimum=100,
        maximum=3_600_000,
    )
    slave_timeout_ms: int = setting(
        3_000,
        "With SYNC_MASTER, how long a send waits for slaves.",
        rocketmq="slaveTimeout",
        minimum=1,
    )
    slave_reads: bool = setting(
        False,
        "Whether consumers may read from slaves.",
        rocketmq="slaveReadEnable",
    )
    acting_master: bool = setting(
        False,
        "Whether the slave with the smallest number may be read as the master while there is none. "
        "Name servers that allow it (nameserver.acting_masters) show it as the master.",
        rocketmq="enableSlaveActingMaster",
    )
    remote_escape: bool = setting(
        False,
        "Whether a slave that stands for its master (broker.acting_master) delivers what falls due "
        "at other masters of the cluster.",
        rocketmq="enableRemoteEscape",
    )
    memory_percent: int = setting(
        40,
        "A consumer that is further behind than this part of the machine's memory, in percent, is "
        "sent to a slave.",
        rocketmq="accessMessageInMemoryMaxRatio",
        minimum=0,
        maximum=95,
    )

    @property
    def copies_wanted(self) -> int:
        """Copies that a message has when its send is answered, the master's included."""
        return (self.copies or 2) if self.role == SYNC_MASTER else 1

    @property
    def copies_least(self) -> int:
        """Copies that must be in sync for a message to be accepted, the master's included."""
        return (self.copies_min or self.copies_wanted) if self.role == SYNC_MASTER else 1

    def role_conflicts(self) -> Iterator[Conflict]:
        """What is wrong with role and number together, where nobody else decides them."""
        if self.id < 0:
            yield Conflict(("id",), f"(brokerId) is at least 0, not {self.id}")
        elif self.role == SLAVE and not self.id:
            yield Conflict(("id", "role"), "(brokerId) of a slave (brokerRole=SLAVE) is above 0")
        elif self.role != SLAVE and self.id:
            yield Conflict(
                ("id", "role"),
                f"(brokerId) is {self.id}: only a slave has a number above 0, and broker.role "
                f"(brokerRole) is {self.role}",
            )

    def copies_conflicts(self) -> Iterator[Conflict]:
        """What is wrong with the numbers of copies together."""
        if self.copies_least > self.copies_wanted:
            yield Conflict(
                ("copies_min", "copies"),
                f"(minInSyncReplicas) is {self.copies_min}, and broker.copies (inSyncReplicas) "
                f"only {self.copies_wanted}",
            )
