"""What a message says about rows, whoever wrote it. Pure.

Values are texts in one form for each type, whatever the message's own form was: `2030-01-31` for a
date, `2030-01-31 10:00:00.5` for a time without a zone, base64 for bytes, JSON for what has parts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Operation = Literal["upsert", "delete"]
Values = Mapping[str, str | None]


@dataclass(frozen=True, slots=True)
class RowChange:
    """A row was written, or deleted.

    Attributes:
        source: the table, `database.table` or `database.schema.table`.
        changed_ms: when, by the clock of the database, ms since 1970; None if that is not said.
        values: by column. A column that is not in it keeps its value. Of a deleted row the key is
            enough.
        before: what is known of the row before an update; it tells whether the key changed.
        key: the columns of the key, as the message says; empty if it does not.
        types: of the columns whose type the message says, as Spark's DDL names it.
    """

    operation: Operation
    source: str
    changed_ms: int | None
    values: Values
    before: Values
    key: tuple[str, ...]
    types: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class MessageContent:
    """The changes in a message.

    Attributes:
        left_out: why a message without changes is right to have none: it is a tombstone, say.
    """

    changes: tuple[RowChange, ...] = ()
    left_out: str = ""
