"""How task queues behave. Pure. Times are in milliseconds, as everywhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sprocket.base.errors import ConfigError

#: Brokers hold messages for three days at most, unless they are set otherwise
#: (`timerMaxDelaySec`). The minute is for clocks that differ.
_DELAY_MAX_MS = 3 * 24 * 3_600_000 - 60_000


@dataclass(frozen=True)
class QueueOptions:
    """Settings that all frameworks share.

    Attributes:
        prefix: the names of all topics and groups begin with it.
        invisible_ms: after this time the tasks of a process that died are delivered to others.
            Tasks may take longer: what a living process holds is renewed.
        queues: how many queues a topic has on each broker when it is made here.
        delay_max_ms: how long brokers hold a message. What is due later is sent again when this is
            over, as often as needed.
        create_topics: whether topics that do not exist are made, at all brokers. If not, or if this
            user may not, they appear with the first message (`autoCreateTopicEnable`).
        client: settings of the clients, as the fields of `ClientConfig` are named: `access_key`,
            `secret_key`, `tls` and others.
    """

    prefix: str = ""
    invisible_ms: int = 30_000
    queues: int = 4
    delay_max_ms: int = _DELAY_MAX_MS
    create_topics: bool = True
    client: Mapping[str, Any] = field(default_factory=dict, repr=False)  # it may have keys

    def __post_init__(self) -> None:
        for name, least in (("invisible_ms", 1_000), ("queues", 1), ("delay_max_ms", 1_000)):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < least:
                raise ConfigError(f"{name} is a whole number of at least {least}, not {value!r}")
        if not isinstance(self.prefix, str):
            raise ConfigError(f"prefix is a text, not {self.prefix!r}")
        if not isinstance(self.client, Mapping):
            raise ConfigError(f"client is a mapping of settings, not {self.client!r}")
