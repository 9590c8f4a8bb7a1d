"""Messages made ready to send: checked, given an id, compressed, properties as text. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple, Protocol

from sprocket.base.errors import UsageError
from sprocket.clientcore.type_errors import mistake
from sprocket.message import batch
from sprocket.message.compression import Compression, compress
from sprocket.message.ids import UniqueIds
from sprocket.message.message import Message
from sprocket.message.outgoing import text_of
from sprocket.message.properties import (
    NAME_END,
    PAIR_END,
    PROPERTIES_BYTES_MAX,
    UNIQUE_KEY,
    WAIT,
    encode,
)
from sprocket.message.queue import QueueId
from sprocket.message.topic import check_topic, is_closed_topic, is_retry_topic
from sprocket.protocol.requests.send import SendBatch, SendMessageV2, SendReplyMessageV2

_COMPRESSIONS = {"zlib": Compression.ZLIB, "lz4": Compression.LZ4, "zstd": Compression.ZSTD}
#: A character has at most four bytes, so shorter texts need not be encoded to count their bytes.
_SURELY_SHORT = PROPERTIES_BYTES_MAX // 4


class Packing(Protocol):
    """How messages are made ready; `ProducerConfig` is one, and describes each value."""

    @property
    def body_bytes_max(self) -> int: ...

    @property
    def compress_over_bytes(self) -> int: ...

    @property
    def compression(self) -> str: ...

    @property
    def compression_level(self) -> int: ...


class JavaPacking(NamedTuple):
    """The defaults of Java's producers. Source: DefaultMQProducer."""

    body_bytes_max: int = 4 * 1024 * 1024
    compress_over_bytes: int = 4 * 1024
    compression: str = "zlib"
    compression_level: int = 5


#: How messages are made ready unless the caller asks for something else.
JAVA_PACKING = JavaPacking()
#: How many queues a topic gets that the first send creates. Source: DefaultMQProducer.
NEW_TOPIC_QUEUES = 4


class Envelope(NamedTuple):
    """A message or batch that is ready to send.

    Attributes:
        born_ms: when it was made ready.
        message_id: the unique id; a batch has one besides those of its messages.
        parts: unique ids of a batch's messages; empty for a single message.
        reconsume_times, reconsume_max: of a message that goes to a retry topic.
        is_reply: whether it replies to a request message.
    """

    topic: str
    body: bytes | bytearray | memoryview
    properties: str
    sys_flag: int
    flag: int
    born_ms: int
    message_id: str
    parts: tuple[str, ...] = ()
    reconsume_times: int = 0
    reconsume_max: int | None = None
    is_reply: bool = False

    @property
    def is_plain(self) -> bool:
        """Whether it is a single message for an ordinary topic, and not a reply."""
        return not (self.parts or self.is_reply or self.reconsume_times or self.reconsume_max)

    def header(self, queue: QueueId, *, group: str, new_topic_queues: int) -> SendMessageV2:
        """The header of the request that sends it to a queue.

        Args:
            group: the sender's producer group.
            new_topic_queues: number of queues of the topic if this send creates it.
        """
        kind: type[SendMessageV2] = SendBatch if self.parts else SendMessageV2
        if self.is_reply:
            kind = SendReplyMessageV2
        return kind(
            producer_group=group,
            topic=self.topic,
            default_topic_queue_nums=new_topic_queues,
            queue_id=queue.number,
            sys_flag=self.sys_flag,
            born_timestamp=self.born_ms,
            flag=self.flag,
            properties=self.properties,
            reconsume_times=self.reconsume_times,
            max_reconsume_times=self.reconsume_max,
            batch=bool(self.parts),
            bname=queue.broker,
        )


def seal(message: Message, ids: UniqueIds, now_ms: int, packing: Packing) -> Envelope:
    """Makes one message ready.

    Raises:
        UsageError: the message cannot be sent; the text has the reason, and the limit if it is one.
    """
    try:
        check(message, packing.body_bytes_max)
        message_id = ids.make(now_ms)
        properties = _properties(message, message_id)
    except (AttributeError, TypeError) as error:
        raise mistake(message, error) from error
    body, sys_flag = message.body, 0
    if len(body) >= packing.compress_over_bytes and packing.compression != "none":
        kind = _COMPRESSIONS[packing.compression]
        smaller = compress(body, kind, packing.compression_level)
        if len(smaller) < len(body):
            body, sys_flag = smaller, kind.sys_flag
    return Envelope(message.topic, body, properties, sys_flag, message.flag, now_ms, message_id)


def seal_batch(
    messages: Sequence[Message], ids: UniqueIds, now_ms: int, packing: Packing
) -> Envelope:
    """Makes several messages ready to go in one request.

    Raises:
        UsageError: one of them, or all together, cannot be sent; the text has the reason.
    """
    if not isinstance(messages, Sequence) or not messages:
        raise UsageError("a batch is a list of messages, at least one")
    # A batch is one request to one queue, and its reply is one for all. So everything that decides
    # where a message goes, or when its reply comes, must be the same for all of them.
    first = messages[0]
    names = []
    parts = []
    for message in messages:
        part, name = batched(message, ids, now_ms, packing)
        names.append(name)
        parts.append(part)
        if message.topic != first.topic or message.wait_stored != first.wait_stored:
            raise UsageError("messages of one batch have one topic and one wait_stored")
        if message.waits or is_retry_topic(message.topic):
            raise UsageError("a batch cannot be delayed, nor go to a retry topic")
        if message.priority is not None:
            raise UsageError("a batch goes to one queue, so its messages cannot have priorities")
    body = batch.encode(parts)
    if len(body) > packing.body_bytes_max:
        raise UsageError(
            f"a batch of {len(body)} bytes; at most {packing.body_bytes_max} may go in one"
        )
    sealed = batch_envelope(first.topic, body, ids, now_ms, wait_stored=first.wait_stored)
    return sealed._replace(parts=tuple(names))


def batched(
    message: Message, ids: UniqueIds, now_ms: int, packing: Packing
) -> tuple[batch.BatchedMessage, str]:
    """A message as it is in a batch, and its unique id.

    Raises:
        UsageError: it cannot be sent.
    """
    # The checks of its types cost nothing: they run only if encoding it has failed.
    name = ids.make(now_ms)
    try:
        check(message, packing.body_bytes_max)
        part = batch.BatchedMessage(message.flag, message.body, _properties(message, name))
    except (AttributeError, TypeError) as error:
        raise mistake(message, error) from error
    return part, name


def batch_envelope(
    topic: str,
    body: bytes | bytearray | memoryview,
    ids: UniqueIds,
    now_ms: int,
    *,
    wait_stored: bool = True,
) -> Envelope:
    """A batch whose body was made elsewhere; its only part is the batch itself."""
    batch_id = ids.make(now_ms)
    properties = encode({UNIQUE_KEY: batch_id, WAIT: "true" if wait_stored else "false"})
    return Envelope(topic, body, properties, 0, 0, now_ms, batch_id, (batch_id,))


def check(message: Message, body_bytes_max: int) -> None:
    """Raises UsageError if the message's topic, body or keys are not valid."""
    _check_open(message.topic)
    body = message.body
    if type(body) is not bytes:
        _check_buffer(body)
    if not body:
        raise UsageError("a body has at least one byte")
    if len(body) > body_bytes_max:
        raise UsageError(f"a body of {len(body)} bytes; at most {body_bytes_max} may be sent")
    if isinstance(message.keys, str):
        raise UsageError("keys is a list of words, not one text")


def _check_buffer(body: object) -> None:
    if not isinstance(body, bytes | bytearray | memoryview):
        raise UsageError(f"a body is bytes, not {type(body).__name__}")
    if isinstance(body, memoryview) and not (body.c_contiguous and body.itemsize == body.ndim == 1):
        raise UsageError("a memoryview as body must be of contiguous bytes; use bytes(view)")


@lru_cache(maxsize=1024)
def _check_open(topic: str) -> None:
    check_topic(topic)
    if is_closed_topic(topic):
        raise UsageError(f"topic {topic!r} is RocketMQ's own and takes no messages")


def _properties(message: Message, message_id: str) -> str:
    text = f"{text_of(message)}{UNIQUE_KEY}{NAME_END}{message_id}{PAIR_END}"
    if len(text) > _SURELY_SHORT:
        size = len(text.encode())
        if size > PROPERTIES_BYTES_MAX:
            raise UsageError(f"properties of {size} bytes; at most {PROPERTIES_BYTES_MAX} fit")
    return text
