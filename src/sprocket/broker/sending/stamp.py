"""What a broker writes on every message that a producer sends. Pure.

MSG_REGION, TRACE_ON and CLUSTER are the broker's own and overwrite what the client set; UNIQ_KEY is
made if there is none. Source: SendMessageProcessor of RocketMQ 5.x.
"""

from __future__ import annotations

import msgspec

from sprocket.broker.config import BrokerConfig
from sprocket.message import properties as names
from sprocket.message.ids import UniqueIds, offset_id
from sprocket.protocol.codes import RequestCode
from sprocket.protocol.command import Header
from sprocket.protocol.requests.send import SendReply
from sprocket.protocol.sent import SentForm
from sprocket.store.writing.appending import Appended

#: What a sender may not say, or the broker says itself.
REWRITTEN = frozenset({names.POP_HANDLE, names.REGION, names.TRACE_SWITCH, names.CLUSTER})


class Marks(Header, kw_only=True):
    """What a refused send tells beside its code."""

    msg_region: str = msgspec.field(name="MSG_REGION")
    trace_on: str | None = msgspec.field(default=None, name="TRACE_ON")


class Stamp:
    """Marks messages, and the replies that tell where they lie.

    Args:
        ids: makes the unique keys.
        store_host: packed address that offset ids carry.

    Attributes:
        broker: the broker's name.
        form: writes the frames of such replies at once.
    """

    __slots__ = ("_cluster", "_host", "_ids", "_marks", "_region", "_trace", "broker", "form")

    def __init__(self, config: BrokerConfig, *, ids: UniqueIds, store_host: bytes) -> None:
        self._region = config.region
        self._trace = "true" if config.trace_on else "false"
        self._cluster = config.cluster
        self.broker = config.name
        self._marks = names.encode(self._marked({}))
        self._ids = ids
        self._host = store_host
        self.form = SentForm(store_host=store_host, region=self._region, trace_on=self._trace)

    def refusals(self) -> dict[int, Header]:
        """The headers that go with errors, by request code."""
        marks = Marks(msg_region=self._region, trace_on=self._trace)
        sends = (
            RequestCode.SEND_MESSAGE,
            RequestCode.SEND_MESSAGE_V2,
            RequestCode.SEND_BATCH_MESSAGE,
        )
        return {
            **dict.fromkeys(sends, marks),
            RequestCode.RECALL_MESSAGE: Marks(msg_region=self._region),
        }

    def mark(self, properties: dict[str, str], now_ms: int) -> str:
        """Marks a message's properties in place.

        Returns:
            Its unique key.
        """
        properties.pop(names.POP_HANDLE, None)
        unique_key = properties.get(names.UNIQUE_KEY)
        if unique_key is None:
            unique_key = properties[names.UNIQUE_KEY] = self._ids.make(now_ms)
        self._marked(properties)
        return unique_key

    def _marked(self, properties: dict[str, str]) -> dict[str, str]:
        properties[names.REGION] = self._region
        properties[names.TRACE_SWITCH] = self._trace
        properties[names.CLUSTER] = self._cluster
        return properties

    def behind(self, text: str, more: str = "") -> bytes:
        """The text of properties of which none is in `REWRITTEN`, the marks behind it, and more."""
        return f"{text}{self._marks}{more}".encode("utf-8", "replace")

    def reply(self, appended: Appended, *, queue_number: int, unique_key: str) -> SendReply:
        """The header that tells a producer where its message lies."""
        return SendReply(
            msg_id=offset_id(self._host, appended.log_offset),
            queue_id=queue_number,
            queue_offset=appended.queue_offset,
            transaction_id=unique_key,
            msg_region=self._region,
            trace_on=self._trace,
        )

    def reply_batch(
        self, appended: list[Appended], *, queue_number: int, unique_key: str
    ) -> SendReply:
        """The same for a batch: all offset ids, the first queue offset, the batch's unique key."""
        reply = self.reply(appended[0], queue_number=queue_number, unique_key=unique_key)
        reply.msg_id = ",".join(offset_id(self._host, one.log_offset) for one in appended)
        return reply
