"""The settings of a container of brokers."""

from __future__ import annotations

from dataclasses import dataclass

from sprocket.base.config import setting


@dataclass(frozen=True, slots=True)
class ContainerConfig:
    """Settings of several broker processes behind one command. Times in milliseconds."""

    port: int = setting(
        10811,
        "TCP port of the container itself, at which `mqadmin addBroker` and `removeBroker` reach "
        "it; 0 takes a free one.",
        minimum=0,
        maximum=65535,
    )
    pin_cpus: bool = setting(False, "Whether each broker stays on a core of its own, on Linux.")
    stop_ms: int = setting(
        30_000,
        "How long the brokers may take to stop in order; then they are killed.",
        minimum=1_000,
        maximum=3_600_000,
    )
    restart_ms_max: int = setting(
        60_000,
        "The longest pause before a broker that ended, or cannot start, is started again; the "
        "first one is half a second, and each is twice the one before.",
        minimum=500,
        maximum=3_600_000,
    )
