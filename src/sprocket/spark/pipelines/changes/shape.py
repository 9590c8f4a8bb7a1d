"""Which columns and key the table has, learnt from messages or given. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from sprocket.base.errors import UsageError
from sprocket.spark.pipelines.tables.columns import name_fault

#: The column that remembers which change a row is from.
PLACE = "_sprocket"
#: A message can name columns as it likes; a table with more than these is a mistake, or an attack.
COLUMNS_MAX = 2_000


class SeenColumn(NamedTuple):
    """A column of a message.

    Attributes:
        source: the database's table.
        key: columns of the key, as the message says.
        kind: Spark's type; empty if the message does not say.
    """

    source: str
    key: tuple[str, ...]
    name: str
    kind: str


@dataclass(frozen=True)
class RowShape:
    """What rows of the table are made of.

    Attributes:
        columns: Spark's type by name, in the table's order.
        key: names of the key's columns; empty while no message has said it.
        source: the one table of the database that is applied; empty if any may be.
        is_given: whether the columns were given; then those of messages that are not in it are
            left out, otherwise they are added.
        refused: columns of messages that a table cannot have, and why.
    """

    columns: Mapping[str, str] = field(default_factory=dict)
    key: tuple[str, ...] = ()
    source: str = ""
    is_given: bool = False
    refused: Mapping[str, str] = field(default_factory=dict)

    def grown(self, seen: Sequence[SeenColumn], *, takes_any_source: bool) -> RowShape:
        """The shape with what messages have told, in the order in which they told it.

        Args:
            takes_any_source: whether several tables of the database become this one.

        Raises:
            UsageError: the first messages are of several tables, so one must be chosen.
        """
        sources = sorted({one.source for one in seen})
        source = self.source
        if not takes_any_source and not source and sources:
            if len(sources) > 1:
                raise UsageError(
                    f"the topic has changes of {', '.join(sources[:10])}: choose one of them, or a "
                    "pattern of some that become one table, by --table"
                )
            source = sources[0]
        ours = [one for one in seen if source in ("", one.source)]
        key = self.key or next((one.key for one in ours if one.key), ())
        if self.is_given:
            return replace(self, key=key, source=source)
        columns, refused = dict(self.columns), dict(self.refused)
        _add(ours, columns, refused)
        return replace(self, columns=columns, key=key, source=source, refused=refused)

    def as_json(self) -> dict[str, Any]:
        """For a file."""
        return {
            "columns": dict(self.columns),
            "key": list(self.key),
            "source": self.source,
            "given": self.is_given,
            "refused": dict(self.refused),
        }

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> RowShape:
        """What `as_json` made.

        Raises:
            UsageError: it did not.
        """
        try:
            return cls(
                columns=dict(found["columns"]),
                key=tuple(found["key"]),
                source=str(found["source"]),
                is_given=bool(found["given"]),
                refused=dict(found["refused"]),
            )
        except (KeyError, TypeError, ValueError):
            raise UsageError(
                "the saved columns of the table have a shape that is not ours"
            ) from None


def _add(seen: Iterable[SeenColumn], columns: dict[str, str], refused: dict[str, str]) -> None:
    """Adds columns that are new and whose type is known."""
    folded = {name.lower(): name for name in (PLACE, *columns)}
    for one in seen:
        name = one.name
        if not one.kind or name in columns or name in refused:
            continue
        other = folded.setdefault(name.lower(), name)
        fault = name_fault(name)
        if other != name:
            fault = f"it differs from {other} by capitals only"
        elif name == PLACE:
            fault = "the table has another column of this name"
        elif len(columns) >= COLUMNS_MAX:
            fault = f"the table has {COLUMNS_MAX:,} columns"
        if fault is None:
            columns[name] = one.kind
        elif len(refused) < COLUMNS_MAX:
            refused[name] = fault
