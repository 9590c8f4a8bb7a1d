"""What a broker writes on every message that a producer sends. Pure.

MSG_REGION, TRACE_ON and CLUSTER are the broker's own and overwrite what the client set; UNIQ_KEY is
made if there is none. Source: SendMessageProcessor of RocketMQ 5.x.
"""

from __future__ import annotations

from sprocket.broker.config import BrokerConfig
from sprocket.message import properties as names
from sprocket.message.ids import UniqueIds

#: What a sender may not say, or the broker says itself.
REWRITTEN = frozenset({names.POP_HANDLE, names.REGION, names.TRACE_SWITCH, names.CLUSTER})


def trace_text(config: BrokerConfig) -> str:
    """Whether clients are to write traces, as messages and replies name it."""
    return "true" if config.trace_on else "false"


class Stamp:
    """Marks messages.

    Args:
        ids: makes the unique keys.
    """

    __slots__ = ("_ids", "_marks", "_text")

    def __init__(self, config: BrokerConfig, *, ids: UniqueIds) -> None:
        self._marks = {
            names.REGION: config.region,
            names.TRACE_SWITCH: trace_text(config),
            names.CLUSTER: config.cluster,
        }
        self._text = names.encode(self._marks)
        self._ids = ids

    def mark(self, properties: dict[str, str], now_ms: int) -> str:
        """Marks a message's properties, which have just been read, in place.

        Returns:
            Its unique key.
        """
        properties.pop(names.POP_HANDLE, None)
        unique_key = properties.get(names.UNIQUE_KEY)
        if unique_key is None:
            unique_key = properties[names.UNIQUE_KEY] = self._ids.make(now_ms)
        properties.update(self._marks)
        return unique_key

    def behind(self, text: str, more: str = "") -> bytes:
        """The text of properties of which none is in `REWRITTEN`, the marks behind it, and more."""
        return f"{text}{self._text}{more}".encode("utf-8", "replace")
