"""A message as rows to apply: what each change does to which row, or why it cannot. Pure.

An update that changes the key deletes the row of the old key and writes that of the new one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Literal, NamedTuple

from sprocket.spark.pipelines.changes import canal, debezium
from sprocket.spark.pipelines.changes.change import MessageContent, RowChange, Values
from sprocket.spark.pipelines.changes.fitting import fitted
from sprocket.spark.pipelines.changes.json_values import UnfitMessage, parsed
from sprocket.spark.pipelines.changes.shape import RowShape, SeenColumn

#: Why a change is set aside that has a column which the shape does not have yet.
NEW_COLUMN = "new column"
Effect = Literal["upsert", "delete", "aside", "left out"]


@dataclass(frozen=True)
class ChangeReader:
    """Reads messages of Canal and Debezium.

    Attributes:
        sources: tables of the database that are applied, `*` stands for any characters; empty for
            the one that the shape names.
        unavailable: the text by which Debezium stands for a value that it does not have.
        key: columns of the key whatever messages say; empty to take it from them.
    """

    sources: tuple[str, ...] = ()
    unavailable: str = debezium.UNAVAILABLE
    key: tuple[str, ...] = ()

    def content(self, body: bytes | None, keys: str | None) -> MessageContent:
        """The changes in a message.

        Raises:
            UnfitMessage: it has none that can be read.
        """
        if not body:
            return MessageContent(left_out="tombstones")
        message = parsed(body)
        if message is None:
            return MessageContent(left_out="tombstones")
        if isinstance(message, dict) and canal.is_canal(message):
            return _named(canal.content(message))
        if isinstance(message, dict) and debezium.is_debezium(message):
            return _named(debezium.content(message, keys, self.unavailable))
        raise UnfitMessage("unknown message", "neither Canal's nor Debezium's")

    def takes(self, source: str, shape: RowShape) -> bool:
        """Whether changes of a table of the database are applied."""
        if self.sources:
            return any(fnmatchcase(source, pattern) for pattern in self.sources)
        return shape.source in ("", source)


def _named(found: MessageContent) -> MessageContent:
    """The same; raises UnfitMessage if a name in it is half a character, as JSON can write it."""
    last = None
    for change in found.changes:
        names = [change.source, *change.values]
        if change.types is not last:  # the rows of one message share them
            last = change.types
            names += [*change.key, *change.types]
        try:
            "".join(names).encode()
        except UnicodeEncodeError:
            raise UnfitMessage("unknown message", "a name in it is no Unicode") from None
    return found


class RowEffect(NamedTuple):
    """What a change does.

    Attributes:
        values: by column; those of the key only for a deletion.
        absent: columns that keep the value that they have.
        reason: why it is set aside, or left out.
    """

    effect: Effect
    changed_ms: int | None
    values: dict[str, Any]
    absent: tuple[str, ...]
    reason: str


def seen_columns(
    body: bytes | None, keys: str | None, reader: ChangeReader
) -> Iterator[SeenColumn]:
    """The columns of a message, those of tables that are applied; nothing if it cannot be read."""
    try:
        found = reader.content(body, keys)
    except UnfitMessage:
        return
    last = None
    for change in found.changes:
        if not reader.takes(change.source, RowShape()) or change.types is last:
            continue
        last = change.types  # the rows of one message share them
        for name, kind in change.types.items():
            yield SeenColumn(change.source, reader.key or change.key, name, kind)


def effects(
    body: bytes | None, keys: str | None, reader: ChangeReader, shape: RowShape
) -> Iterator[RowEffect]:
    """What a message does, in order: at least one item, which may be that it is set aside."""
    try:
        found = reader.content(body, keys)
    except UnfitMessage as error:
        yield _aside(error)
        return
    if not found.changes:
        yield RowEffect("left out", None, {}, (), found.left_out)
    for change in found.changes:
        try:
            yield from tuple(_effects(change, reader, shape))
        except UnfitMessage as error:
            yield _aside(error)


def _aside(error: UnfitMessage) -> RowEffect:
    reason = str(error).encode("utf-8", "backslashreplace").decode()
    return RowEffect("aside", None, {}, (), reason)


def _effects(change: RowChange, reader: ChangeReader, shape: RowShape) -> Iterator[RowEffect]:
    if not reader.takes(change.source, shape):
        raise UnfitMessage("another table", ascii(change.source))
    key = reader.key or change.key
    if not key:
        raise UnfitMessage("no key", "neither the message nor --key names it")
    if shape.key and set(key) != set(shape.key):
        raise UnfitMessage("no key", f"the message's is {key!a}, the table's {shape.key!a}")
    new = _key(change.values, shape)
    if change.operation == "delete":
        yield RowEffect("delete", change.changed_ms, new, (), "")
        return
    written = _written(change.values, shape)
    if all(change.before.get(name) is not None for name in shape.key):
        old = _key(change.before, shape)
        if old != new:
            yield RowEffect("delete", change.changed_ms, old, (), "")
    absent = tuple(name for name in shape.columns if name not in written)
    yield RowEffect("upsert", change.changed_ms, written, absent, "")


def _key(values: Values, shape: RowShape) -> dict[str, Any]:
    found = {}
    for name in shape.key:
        text = values.get(name)
        if text is None:
            raise UnfitMessage("no key", f"{name!a} is not in it, or null")
        if name not in shape.columns:
            raise UnfitMessage("no key", _fault(name, shape))
        found[name] = fitted(name, text, shape.columns[name])
    return found


def _written(values: Values, shape: RowShape) -> dict[str, Any]:
    found = {}
    for name, text in values.items():
        if name in shape.columns:
            found[name] = fitted(name, text, shape.columns[name])
        elif text is not None and not shape.is_given:
            kind = "column" if name in shape.refused else NEW_COLUMN
            raise UnfitMessage(kind, _fault(name, shape))
    return found


def _fault(name: str, shape: RowShape) -> str:
    return f"{name!a} cannot be in the table: {shape.refused.get(name, 'its type is not known')}"
