"""How groups that let the broker decide consume a topic: by pull or by pop.

File: `messageRequestMode.json`, `{"messageRequestModeMap":{topic:{group:{...}}}}`, as in Java.
Source: MessageRequestModeManager of RocketMQ 5.3.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from sprocket.base.errors import SystemBusy
from sprocket.protocol.bodies import RequestMode

PULL, POP = "PULL", "POP"
#: Modes of all topics and groups at most.
_MODES_MAX = 10_000


class RequestModeTable:
    """The modes that operators have set, by topic and group.

    Args:
        on_change: is called with the topic of a mode that has changed.
    """

    def __init__(self, on_change: Callable[[str], None]) -> None:
        self._on_change = on_change
        self.by_topic: dict[str, dict[str, RequestMode]] = {}

    def get(self, topic: str, group: str) -> RequestMode | None:
        """The mode of a group for a topic; None if none is set."""
        return self.by_topic.get(topic, {}).get(group)

    def put(self, mode: RequestMode) -> None:
        """Sets a mode.

        Raises:
            SystemBusy: there are too many.
        """
        if sum(map(len, self.by_topic.values())) >= _MODES_MAX:
            raise SystemBusy(f"the broker has {_MODES_MAX} request modes, its limit")
        self.by_topic.setdefault(mode.topic or "", {})[mode.consumer_group or ""] = mode
        self._on_change(mode.topic or "")

    def copy(self, topic: str, modes: Mapping[str, RequestMode]) -> None:
        """Makes the modes of a topic as a master has them; none for a topic without."""
        if self.by_topic.get(topic, {}) == modes:
            return
        if modes:
            self.by_topic[topic] = dict(modes)
        else:
            del self.by_topic[topic]
        self._on_change(topic)

    def to_json(self) -> dict[str, Any]:
        """The table as JSON for its file."""
        return {"messageRequestModeMap": msgspec.to_builtins(self.by_topic)}

    def load(self, state: Mapping[str, Any]) -> None:
        """Loads the table from the JSON of its file.

        Raises:
            msgspec.ValidationError: the JSON has another form.
        """
        table = msgspec.convert(
            state.get("messageRequestModeMap") or {},
            dict[str, dict[str, RequestMode]],
            strict=False,
        )
        self.by_topic = {
            topic: {
                group: replace(mode, topic=topic, consumer_group=group)
                for group, mode in groups.items()
            }
            for topic, groups in table.items()
        }
