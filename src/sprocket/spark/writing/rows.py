"""Turns rows into messages: the columns of a write, and their meaning. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sprocket.base.errors import UsageError
from sprocket.message.message import Message
from sprocket.message.properties import RESERVED, check_user_property
from sprocket.spark.options.write_options import WriteOptions

#: Columns of a write, and the Spark types that each may have.
COLUMNS = {
    "topic": ("string",),
    "body": ("binary", "string"),
    "key": ("string",),
    "tag": ("string",),
    "properties": ("map<string,string>",),
    "broker": ("string",),
    "queue_id": ("int", "bigint"),
    "delay_level": ("int", "bigint"),
    "flag": ("int", "bigint"),
    "deliver_at": ("timestamp",),
}
_ELSEWHERE = {"value": "body", "headers": "properties", "keys": "key", "tags": "tag"}


class OutgoingMessage(NamedTuple):
    """A message to send.

    Attributes:
        broker, queue_number: the queue to which it must go; None for any.
    """

    message: Message
    broker: str | None
    queue_number: int | None


def check_columns(fields: Sequence[tuple[str, str]], options: WriteOptions) -> None:
    """Raises UsageError unless rows of these columns (name, Spark type) can be written."""
    names = {name for name, _ in fields}
    if options.body_format is not None and "value" in names:
        if "body" in names:
            raise UsageError("give a column body or a column value, not both")
        fields = [each for each in fields if each[0] != "value"]
        names.add("body")
    for name, kind in fields:
        if name not in COLUMNS:
            close = difflib.get_close_matches(name.lower(), COLUMNS, n=1, cutoff=0.6)
            nearest = _ELSEWHERE.get(name.lower()) or (close[0] if close else None)
            hint = f"did you mean {nearest}?" if nearest else f"there are: {', '.join(COLUMNS)}"
            raise UsageError(f"column {name} cannot be written: {hint}")
        if kind not in COLUMNS[name]:
            raise UsageError(f"column {name} must be {' or '.join(COLUMNS[name])}, not {kind}")
    if "body" not in names:
        raise UsageError("a column body is needed")
    if "topic" not in names and options.topic is None:
        raise UsageError("where to? Give option topic, or a column topic")


class RowMessages:
    """Makes messages from rows.

    Args:
        options: the user's options.
        id_prefix: all ids of this task begin with it.
    """

    def __init__(self, options: WriteOptions, id_prefix: str) -> None:
        self._options = options
        self._id_prefix = id_prefix
        self._count = 0

    @property
    def count(self) -> int:
        """How many rows there were."""
        return self._count

    def skip(self, count: int) -> None:
        """Counts rows that were made messages elsewhere."""
        self._count += count

    def of(self, batch: pa.RecordBatch) -> Iterator[OutgoingMessage]:
        """A message for each row. No row of the batch is sent if one has no body.

        Raises:
            UsageError: a row cannot be a message; the text has its number and the reason.
        """
        count = batch.num_rows
        self._check_bodies(batch)
        given = {name: batch.column(name).to_pylist() for name in batch.schema.names}
        absent: list[Any] = [None] * count
        columns = [given.get(name, absent) for name in COLUMNS]
        for values in zip(*columns, strict=True):
            try:
                yield self._message(*values)
            except UsageError as error:
                raise UsageError(f"row {self._count} of this task: {error}") from None
            self._count += 1

    def _check_bodies(self, batch: pa.RecordBatch) -> None:
        bodies = batch.column("body")
        sizes = pc.fill_null(pc.binary_length(bodies), 0).to_numpy(zero_copy_only=False)
        if len(empty := np.flatnonzero(sizes == 0)):
            row = int(empty[0])
            what = "its body is empty: RocketMQ takes no empty bodies"
            if not bodies[row].is_valid:
                what = "it has no body"
            raise UsageError(f"row {self._count + row} of this task: {what}")

    def _message(  # the columns, in their order
        self,
        topic: str | None,
        body: bytes | str,
        *rest: Any,
    ) -> OutgoingMessage:
        key, tag, properties, broker, queue_number, delay_level, flag, deliver_at = rest
        options = self._options
        if delay_level is None:
            # The row's own time takes precedence over the delay of the whole write.
            delay_level = options.delay_level if deliver_at is None else 0
        topic = topic or options.topic
        if topic is None:
            raise UsageError("it has no topic, and option topic is not given")
        message = Message(
            topic,
            body.encode() if isinstance(body, str) else body,
            tag=tag or options.tag,
            keys=key.split() if key else (),
            properties=self._properties(properties),
            flag=flag or 0,
            delay_level=delay_level,
            deliver_at=deliver_at,
        )
        return OutgoingMessage(message, broker, queue_number)

    def _properties(self, given: Sequence[tuple[str, str | None]] | None) -> dict[str, str]:
        """The user's properties, without RocketMQ's own from a read: the send makes new ones."""
        found = {}
        for name, value in given or ():
            if name not in RESERVED and value:
                check_user_property(name, value)
                found[name] = value
        if self._options.id_property is not None:
            found[self._options.id_property] = f"{self._id_prefix}-{self._count}"
        return found
