"""The offsets of a stream as Spark's checkpoint keeps them, with what recognises each queue. Pure.

    {
        "orders": {"broker-a": {"0": 800}},
        ":read": {"orders": {"broker-a": {"0": [799, 123456, 1700000000000]}}},
        ":anew": {"orders": {"broker-a": {"0": 0}}}
    }

A number alone does not say of which queue it is: a topic may be deleted and made again, and its
queues then count from 0 again. So `:read` keeps a witness of each queue: a message that was read,
with its queue offset, its log offset and its store time, which no other message has. `:anew` has
the queues that this micro-batch does not continue, and the offset at which it begins in them. Both
are absent in checkpoints of earlier versions. No topic has a colon in its name.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from sprocket.clientcore.witness import Witness
from sprocket.message.offsets import LONG_MAX
from sprocket.message.queue import QueueId

T = TypeVar("T")

READ = ":read"
ANEW = ":anew"


Witnesses = dict[QueueId, Witness]


@dataclass(frozen=True)
class StreamOffsets:
    """The place of a stream.

    Attributes:
        next: the next offset to read in each queue.
        witnesses: a message that was read before it, of queues where one is known.
        anew: where the micro-batch that ends here begins in queues that it does not continue.
    """

    next: dict[QueueId, int]
    witnesses: Witnesses = field(default_factory=dict)
    anew: dict[QueueId, int] = field(default_factory=dict)


def shape_offsets(offsets: Mapping[QueueId, T]) -> dict[str, dict[str, dict[str, T]]]:
    """Offsets by topic, broker and queue number, as a checkpoint keeps them."""
    shape: dict[str, dict[str, dict[str, T]]] = {}
    for queue in sorted(offsets):
        numbers = shape.setdefault(queue.topic, {}).setdefault(queue.broker, {})
        numbers[str(queue.number)] = offsets[queue]
    return shape


def read_shape(shape: Mapping[str, Mapping[str, Mapping[str, T]]]) -> dict[QueueId, T]:
    """The offsets of which `shape_offsets` made this shape."""
    return {
        QueueId(topic, broker, int(number)): offset
        for topic, brokers in shape.items()
        for broker, numbers in brokers.items()
        for number, offset in numbers.items()
    }


def shape_checkpoint(offsets: StreamOffsets) -> dict[str, Any]:
    """The offsets as JSON; equal offsets give equal texts."""
    shape: dict[str, Any] = dict(shape_offsets(offsets.next))
    if offsets.witnesses:
        shape[READ] = shape_witnesses(offsets.witnesses)
    if offsets.anew:
        shape[ANEW] = shape_offsets(offsets.anew)
    return shape


def read_checkpoint(shape: Mapping[str, Any]) -> StreamOffsets:
    """The offsets of which `shape_checkpoint` made this JSON; of an earlier version, too."""
    plain = {topic: brokers for topic, brokers in shape.items() if topic not in (READ, ANEW)}
    return StreamOffsets(
        read_shape(plain),
        read_witnesses(shape.get(READ, {})),
        read_shape(shape.get(ANEW, {})),
    )


def offsets_in(text: str) -> StreamOffsets | None:
    """The offsets of a RocketMQ source in a text of Spark's; None if they are of another source.

    A checkpoint has JSON. So has a query's progress, or what Python's `str` makes of it (in PySpark
    before 4.3).
    """
    try:
        shape = json.loads(text) if '"' in text else ast.literal_eval(text)
        offsets = read_checkpoint(shape)
    except (ValueError, SyntaxError, RecursionError, MemoryError, AttributeError, TypeError):
        return None
    return offsets if all(map(_is_place, offsets.next, offsets.next.values())) else None


def _is_place(queue: QueueId, offset: object) -> bool:
    # What has other names was not written by us, and is not to be shown on a terminal.
    is_named = f"{queue.topic}{queue.broker}".isprintable() and queue.number >= 0
    return is_named and type(offset) is int and 0 <= offset <= LONG_MAX


def shape_witnesses(witnesses: Mapping[QueueId, Witness]) -> dict[str, Any]:
    """Witnesses by topic, broker and queue number, as JSON has them."""
    return shape_offsets({queue: list(one) for queue, one in witnesses.items()})


def read_witnesses(shape: Mapping[str, Any]) -> Witnesses:
    """The witnesses of which `shape_witnesses` made this JSON.

    Raises:
        AttributeError, TypeError, ValueError: it has another shape.
    """
    found = {queue: Witness(*numbers) for queue, numbers in read_shape(shape).items()}
    if not all(type(number) is int for one in found.values() for number in one):
        raise TypeError("a witness consists of whole numbers")
    return found
