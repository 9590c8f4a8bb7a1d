"""The settings of a broker whose group elects its master: part of a broker's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sprocket.base import setting_forms as forms
from sprocket.base.config import Conflict, setting
from sprocket.broker.replica_config import SLAVE, ReplicaConfig
from sprocket.election.places import CONTROLLER, elector_form


@dataclass(frozen=True, slots=True)
class ElectorConfig(ReplicaConfig):
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

    def elector_conflicts(self) -> Iterator[Conflict]:
        """What is wrong with an elector and the other settings together."""
        place = self.elector_place or ""
        if self.elector and self.controller_mode:
            yield Conflict(
                ("controller_mode", "elector"),
                "(enableControllerMode) and broker.elector both name an elector: keep one",
            )
        elif not self.elector and (complaint := elector_form(place)):
            yield Conflict(
                ("controllers", "controller_mode"),
                f"(controllerAddr) is needed for broker.controller_mode (enableControllerMode) and "
                f"{complaint}",
            )
        if self.role == SLAVE:
            yield Conflict(
                ("role", "elector"),
                "(brokerRole) is SLAVE, but with an elector it decides only how the broker "
                "acknowledges while it is the master: set SYNC_MASTER, which RocketMQ makes of it "
                "in controller mode, or ASYNC_MASTER",
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
