"""What a broker writes on every message that a producer sends. Pure.

MSG_REGION, TRACE_ON and CLUSTER are the broker's own and overwrite what the client set; UNIQ_KEY is
made if there is none. What a broker notes on messages that wait is taken off a message that is
sent: Java believes it, so that a sender can skip a delay.
Source: SendMessageProcessor of RocketMQ 5.x.
"""

from __future__ import annotations

from sprocket.base.errors import IllegalMessage
from sprocket.broker.config import BrokerConfig
from sprocket.message import properties as names
from sprocket.message.ids import UniqueIds

_MARKS = frozenset({names.REGION, names.TRACE_SWITCH, names.CLUSTER})
#: What a sender may not say, or the broker says itself.
REWRITTEN = names.OF_BROKERS | _MARKS | {names.TIMER_DELETE_KEY}


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

    def mark(self, properties: dict[str, str], now_ms: int, *, is_retry: bool = False) -> str:
        """Marks a message's properties, which have just been read, in place.

        Args:
            is_retry: whether a consumer gives it back by a send, with all that it received.

        Returns:
            Its unique key.

        Raises:
            IllegalMessage: it would take back a message that waits, as only a recall may.
        """
        if names.TIMER_DELETE_KEY in properties:
            raise IllegalMessage(
                f"property {names.TIMER_DELETE_KEY} is the broker's own: recall a message by its "
                "handle"
            )
        if is_retry:
            properties.pop(names.POP_HANDLE, None)
        else:
            for name in names.OF_BROKERS.intersection(properties):
                del properties[name]
        unique_key = properties.get(names.UNIQUE_KEY)
        if unique_key is None:
            unique_key = properties[names.UNIQUE_KEY] = self._ids.make(now_ms)
        properties.update(self._marks)
        return unique_key

    def behind(self, text: str, more: str = "") -> bytes:
        """The text of properties of which none is in `REWRITTEN`, the marks behind it, and more."""
        return f"{text}{self._text}{more}".encode("utf-8", "replace")
