"""The settings of a broker whose group elects its master: part of a broker's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sprocket.base import setting_forms as forms
from sprocket.base.config import Conflict, setting
from sprocket.broker.lite_config import LiteConfig
from sprocket.broker.replica_config import SLAVE, SYNC_MASTER
from sprocket.election.places import CONTROLLER, elector_form

#: What brokers of RocketMQ wait for each other.
_RIVAL_LEASE_MS = 20_000


@dataclass(frozen=True, slots=True)
class ElectorConfig(LiteConfig):
    """Settings of election. Times in milliseconds."""

    elector: str | None = setting(
        None,
        "Who decides which broker of this name is the master: `etcd://host:port,host:port`, "
        "`https://…` for etcd with TLS, or RocketMQ's controller, `controller://host:port;…`. "
        "Without it `role` decides.",
        form=elector_form,
    )
    elector_password: str | None = setting(
        None, "The password of the user in `elector`.", is_secret=True
    )
    elector_ca: str | None = setting(
        None, "File with the certificates of who may vouch for etcd, PEM.", form=forms.folder
    )
    elector_cert: str | None = setting(
        None, "File with this broker's certificate for etcd, PEM.", form=forms.folder
    )
    elector_key: str | None = setting(
        None, "File with the key of that certificate, PEM.", form=forms.folder
    )
    controller_mode: bool = setting(
        False,
        "Whether the brokers at `controllers` are the elector: RocketMQ's way to say it.",
        rocketmq="enableControllerMode",
    )
    controllers: str | None = setting(
        None,
        "RocketMQ's controllers, `host:port;host:port`, for `controller_mode`.",
        rocketmq="controllerAddr",
    )
    controller_heartbeat_ms: int = setting(
        1_000,
        "RocketMQ's controller gets a sign of life this often, and is asked who leads.",
        rocketmq="brokerHeartbeatInterval",
        minimum=50,
        maximum=60_000,
    )
    controller_silence_ms: int = setting(
        10_000,
        "A broker that gives RocketMQ's controller no sign of life for so long is replaced; one "
        "whose connection ends, at once.",
        rocketmq="controllerHeartBeatTimeoutMills",
        minimum=300,
        maximum=600_000,
    )
    all_acknowledge: bool = setting(
        False,
        "With an elector: whether a send is answered when all of the in-sync set have the message, "
        "whatever `role` says.",
        rocketmq="allAckInSyncStateSet",
    )
    lease_ms: int = setting(
        3_000,
        "For how long a member of the group is taken for alive without a sign of it. A master that "
        "is silent is replaced before that.",
        minimum=300,
        maximum=60_000,
    )
    elect_unclean: bool = setting(
        False,
        "Whether this broker may become the master without having everything that was "
        "acknowledged, if no member that has it is alive. What it does not have is lost.",
    )
    election_priority: int = setting(
        (1 << 31) - 1,
        "Of several members that could lead with equal logs, the one with the lowest number here "
        "leads.",
        rocketmq="brokerElectionPriority",
        minimum=0,
        maximum=(1 << 31) - 1,
    )

    @property
    def elector_place(self) -> str | None:
        """Who decides, from either way to say it; None without an elector."""
        if self.elector or not self.controller_mode:
            return self.elector
        return f"{CONTROLLER}://{self.controllers or ''}"

    @property
    def group_lease_ms(self) -> int:
        """How long the members of a group wait for signs of each other.

        With RocketMQ's controller, members may be RocketMQ's brokers. They show each other that
        they live every 5 s, and wait for 20 s; and it is the controller that replaces a master.
        """
        place = self.elector_place or ""
        if place.startswith(f"{CONTROLLER}:"):
            return max(self.lease_ms, 2 * self.controller_silence_ms, _RIVAL_LEASE_MS)
        return self.lease_ms

    @property
    def leading_role(self) -> str:
        """How the broker acknowledges while an elector makes it the master.

        RocketMQ's own examples of controller mode have `brokerRole=SLAVE`, and a master is a
        SYNC_MASTER there.
        """
        if self.all_acknowledge or self.role == SLAVE:
            return SYNC_MASTER
        return self.role

    def elector_conflicts(self) -> Iterator[Conflict]:
        """What is wrong with an elector and the other settings together."""
        place = self.elector_place or ""
        if self.elector and self.controller_mode:
            yield Conflict(
                ("controller_mode", "elector"),
                "(enableControllerMode) and broker.elector both name an elector: keep one",
            )
        if self.controller_silence_ms < 2 * self.controller_heartbeat_ms:
            yield Conflict(
                ("controller_silence_ms", "controller_heartbeat_ms"),
                f"(controllerHeartBeatTimeoutMills) is {self.controller_silence_ms}, which is less "
                "than two of broker.controller_heartbeat_ms (brokerHeartbeatInterval), "
                f"{self.controller_heartbeat_ms}",
            )
        if not self.elector and (complaint := elector_form(place)):
            yield Conflict(
                ("controllers", "controller_mode"),
                f"(controllerAddr) is needed for broker.controller_mode (enableControllerMode) and "
                f"{complaint}",
            )
        if self.elector and self.role == SLAVE:
            yield Conflict(
                ("role", "elector"),
                "(brokerRole) is SLAVE, but with broker.elector no broker stays a slave: it says "
                "how this one acknowledges while it leads, so set SYNC_MASTER or ASYNC_MASTER",
            )
        if bool(self.elector_cert) != bool(self.elector_key):
            yield Conflict(
                ("elector_cert", "elector_key"),
                "and broker.elector_key go together: a certificate and its key",
            )
        if self.id > 0:
            yield Conflict(
                ("id", "elector"),
                f"(brokerId) is {self.id}, but with an elector each broker gets its number from "
                "it: leave it out",
            )
