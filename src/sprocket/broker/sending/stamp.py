"""The properties that a broker adds to every message that a producer sends. Pure.

MSG_REGION, TRACE_ON and CLUSTER replace the values of the client; UNIQ_KEY is added if it is
missing. Properties that only brokers write (`OF_BROKERS`) are removed from a send. Java trusts
them, so there a sender can skip the delay of a message.
Source: SendMessageProcessor of RocketMQ 5.x.
"""

from __future__ import annotations

from sprocket.base.errors import IllegalMessage
from sprocket.broker.config import BrokerConfig
from sprocket.message import properties as names
from sprocket.message.ids import UniqueIds

_MARKS = frozenset({names.REGION, names.TRACE_SWITCH, names.CLUSTER})
#: Properties that the broker removes from a send, refuses, or sets itself.
REWRITTEN = names.OF_BROKERS | _MARKS | {names.TIMER_DELETE_KEY}


def trace_text(config: BrokerConfig) -> str:
    """Whether clients write traces, as the text in messages and replies."""
    return "true" if config.trace_on else "false"


class Stamp:
    """Adds the broker's properties to messages.

    Args:
        ids: generates unique keys.
    """

    __slots__ = ("_ids", "_marks", "_text")

    def __init__(self, config: BrokerConfig, *, ids: UniqueIds) -> None:
        self._ids = ids
        self.change(config)

    def change(self, config: BrokerConfig) -> None:
        """Adds what these settings say from now on."""
        self._marks = {
            names.REGION: config.region,
            names.TRACE_SWITCH: trace_text(config),
            names.CLUSTER: config.cluster,
        }
        self._text = names.encode(self._marks)

    def mark(self, properties: dict[str, str], now_ms: int, *, is_retry: bool = False) -> str:
        """Adds the broker's properties to a message's, in place; they are freshly parsed.

        Args:
            is_retry: whether a consumer sends the message back, with all properties it received.

        Returns:
            The message's unique key.

        Raises:
            IllegalMessage: the message would recall another one, which only a recall may do.
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
        """A text of properties, none of them in `REWRITTEN`, followed by the broker's properties
        and by `more`."""
        return f"{text}{self._text}{more}".encode("utf-8", "replace")
