"""How task queues behave. Pure. Times are in milliseconds, as everywhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from sprocket.base.errors import ConfigError, UsageError
from sprocket.client.config import ClientConfig

#: Brokers hold messages for three days at most, unless they are set otherwise
#: (`timerMaxDelaySec`). The minute is for clocks that differ.
_DELAY_MAX_MS = 3 * 24 * 3_600_000 - 60_000
#: As RabbitMQ has it, whose users these numbers come from.
_PRIORITY_MAX = 255


def check_max_priority(value: Any) -> int:
    """The highest priority of a queue's tasks, as it was given.

    Raises:
        ConfigError: it is no whole number from 0 to 255.
    """
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= _PRIORITY_MAX:
        raise ConfigError(
            f"the highest priority of a queue is a whole number from 0 to {_PRIORITY_MAX},"
            f" not {value!r}"
        )
    return value


def priority_given(name: str, value: Any) -> int:
    """The priority of a task as its sender gave it, a number or its digits; 0 for None.

    Raises:
        UsageError: it is no whole number; `name` says what it is.
    """
    is_text = isinstance(value, str) and len(value) < 16 and value.isascii() and value.isdigit()
    if value is None or is_text or (isinstance(value, int) and not isinstance(value, bool)):
        return int(value or 0)
    raise UsageError(f"{name} is a whole number, not {value!r}")


@dataclass(frozen=True)
class QueueOptions:
    """Settings that all frameworks share.

    Attributes:
        prefix: the names of all topics and groups begin with it.
        invisible_ms: after this time the tasks of a process that died are delivered to others.
            Tasks may take longer: what a living process holds is renewed.
        queues: how many queues a topic has on each broker when it is made here.
        max_priority: the highest priority of tasks, 1 to 255; 0 for queues without priorities. A
            topic that is made here has a queue for each of them on each broker.
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
    max_priority: int = 0
    delay_max_ms: int = _DELAY_MAX_MS
    create_topics: bool = True
    client: Mapping[str, Any] = field(default_factory=dict, repr=False)  # it may have keys

    def __post_init__(self) -> None:
        for name, least in (("invisible_ms", 1_000), ("queues", 1), ("delay_max_ms", 1_000)):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < least:
                raise ConfigError(f"{name} is a whole number of at least {least}, not {value!r}")
        check_max_priority(self.max_priority)
        if not isinstance(self.prefix, str):
            raise ConfigError(f"prefix is a text, not {self.prefix!r}")
        if not isinstance(self.create_topics, bool):
            raise ConfigError(f"create_topics is True or False, not {self.create_topics!r}")
        if not isinstance(self.client, Mapping):
            raise ConfigError(f"client is a mapping of settings, not {self.client!r}")
        known = [each.name for each in fields(ClientConfig)]
        if unknown := sorted(map(str, self.client.keys() - set(known))):
            raise ConfigError(
                f"client has no setting {', '.join(unknown)}; there are {', '.join(known)}"
            )
        ClientConfig(**self.client)
