"""The handle of a popped message, and the lists in a pop's reply from which clients make it. Pure.

A handle is a text of words with blanks between them: offset of its check point, time of the pop and
how long it stays invisible (ms), revive queue (999 for a pop in order), kind of topic (0 the topic
itself, 1 and 2 the group's retry topic in its two forms), broker name, queue, and the message's
queue offset. It is not signed: whoever knows these values can make one. A reply carries them for
all its messages, as lists of `kind queue value` with `;` between them, so that it need not change
the records.
Source: ExtraInfoUtil and KeyBuilder of RocketMQ 5.3; its texts are in the tests.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from sprocket.base.errors import UsageError
from sprocket.message.offsets import LONG_MAX
from sprocket.message.topic import RETRY_PREFIX, pop_retry_topic

#: The revive queue in handles of messages that were popped in order.
ORDER_QUEUE = 999
NORMAL, RETRY, RETRY_V2 = "0", "1", "2"

#: Longer handles are refused: a broker's name and seven numbers are shorter.
_TEXT_MAX = 1024
_WORDS = 8
#: The most messages that one pop may give, so that a bit for each fits into Java's numbers.
POP_COUNT_MAX = 32


class PopHandle(NamedTuple):
    """What a handle says.

    Attributes:
        start_offset: first queue offset of the check point, by which it is found again.
        pop_ms, invisible_ms: when it was popped, and for how long it is hidden from others.
        kind: `NORMAL`, `RETRY` or `RETRY_V2`.
        offset: queue offset of the message.
    """

    start_offset: int
    pop_ms: int
    invisible_ms: int
    revive_queue: int
    kind: str
    broker: str
    queue_number: int
    offset: int

    @property
    def due_ms(self) -> int:
        """When the message becomes visible again."""
        return self.pop_ms + self.invisible_ms

    @property
    def is_in_order(self) -> bool:
        """Whether it was popped in order."""
        return self.revive_queue == ORDER_QUEUE

    def encode(self) -> str:
        """The handle as text."""
        return " ".join(map(str, self))

    @classmethod
    def parse(cls, text: str) -> PopHandle:
        """Parses a handle. Words behind the eighth, which gRPC proxies add, are ignored.

        Raises:
            UsageError: it is no handle of a popped message.
        """
        words = text.split(" ") if len(text) <= _TEXT_MAX else []
        try:
            if len(words) < _WORDS or words[4] not in (NORMAL, RETRY, RETRY_V2) or not words[5]:
                raise ValueError
            start, pop_ms, invisible_ms, revive_queue = map(_number, words[:4])
            queue_number, offset = map(_number, words[6:8])
        except ValueError:
            raise UsageError(f"no handle of a popped message: {text[:100]!r}") from None
        return cls(
            start, pop_ms, invisible_ms, revive_queue, words[4], words[5], queue_number, offset
        )


def _number(word: str) -> int:
    if not word.isascii() or not word.isdecimal() or (number := int(word[:20])) > LONG_MAX:
        raise ValueError
    return number


def kind_of(topic: str) -> str:
    """The kind of a topic in handles and lists."""
    if not topic.startswith(RETRY_PREFIX):
        return NORMAL
    return RETRY_V2 if "+" in topic else RETRY


def topic_of(topic: str, group: str, kind: str) -> str:
    """The topic in which a popped message lies, by the topic of the pop and the kind."""
    return topic if kind == NORMAL else pop_retry_topic(topic, group, is_v2=kind == RETRY_V2)


class PoppedSpan(NamedTuple):
    """The messages that a pop found in one queue.

    Attributes:
        topic: the topic in which they lie, which may be a retry topic.
        start_offset: the offset of their check point.
        offsets: their queue offsets.
    """

    topic: str
    queue_number: int
    start_offset: int
    offsets: Sequence[int]


def start_offsets_text(spans: Iterable[PoppedSpan]) -> str:
    """The list `startOffsetInfo` of a reply."""
    return ";".join(
        f"{kind_of(span.topic)} {span.queue_number} {span.start_offset}" for span in spans
    )


def message_offsets_text(spans: Iterable[PoppedSpan]) -> str:
    """The list `msgOffsetInfo` of a reply."""
    return ";".join(
        f"{kind_of(span.topic)} {span.queue_number} {','.join(map(str, span.offsets))}"
        for span in spans
    )


def order_counts_text(
    topic: str, queue_number: int, offsets: Sequence[int], counts: dict[int, int]
) -> str:
    """The part of `orderCountInfo` for one queue: how often messages were given out before.

    Args:
        counts: that number by queue offset, of those for which it is not 0.
    """
    kind = kind_of(topic)
    least = min((counts.get(offset, 0) for offset in offsets), default=0)
    parts = [f"{kind} qo{queue_number}%{offset} {count}" for offset, count in counts.items()]
    return ";".join([*parts, f"{kind} {queue_number} {least}"])


def read_order_counts(text: str) -> dict[tuple[str, int, int], int]:
    """The entries of `orderCountInfo`: how often messages were given out before, if that is not 0.

    Returns:
        That number by kind, queue and queue offset; with offset -1, that of all others there.

    Raises:
        UsageError: it is no such list.
    """
    found: dict[tuple[str, int, int], int] = {}
    for part in text.split(";") if text else ():
        try:
            kind, place, count = part.split(" ")
            queue, _, offset = place.removeprefix("qo").partition("%")
            found[kind, _number(queue), _number(offset) if offset else -1] = _number(count)
        except ValueError:
            raise UsageError(f"no list of counts: {text[:100]!r}") from None
    return found


def read_offsets(text: str) -> dict[tuple[str, int], list[int]]:
    """The entries of `startOffsetInfo` or `msgOffsetInfo`: offsets by kind and queue.

    Raises:
        UsageError: it is no such list.
    """
    found: dict[tuple[str, int], list[int]] = {}
    for part in text.split(";") if text else ():
        try:
            kind, queue, values = part.split(" ")
            found[kind, _number(queue)] = [_number(value) for value in values.split(",")]
        except ValueError:
            raise UsageError(f"no list of offsets: {text[:100]!r}") from None
    return found
