"""Encodes the column `value` of rows that are written into their column `body`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from sprocket.base.errors import UsageError
from sprocket.spark.options.write_options import WriteOptions

VALUE, BODY = "value", "body"


def encoded(batches: Iterable[pa.RecordBatch], options: WriteOptions) -> Iterator[pa.RecordBatch]:
    """The same rows with `body` in place of `value`.

    Raises:
        UsageError: a value does not fit the schema; the text has the number of its row.
        RegistryUnavailable: the schema cannot be fetched.
    """
    if options.body_format is None:
        yield from batches
        return
    from sprocket.schemas.errors import BodyMismatch

    codec = options.choice(options.topic).codec()
    first = 0
    for batch in batches:
        if VALUE not in batch.schema.names:
            yield batch
            continue
        at = batch.schema.get_field_index(VALUE)
        # A field that is null is left out of JSON, as by Spark's own `to_json`.
        plain = _plain(batch.schema.field(at).type, has_nulls=options.body_format != "json")
        bodies: list[bytes | None] = []
        for row, value in enumerate(batch.column(at).to_pylist(), first):
            try:
                bodies.append(None if value is None else codec.encode(plain(value)))
            except BodyMismatch as error:
                raise UsageError(f"row {row} of this task: {error}") from None
        first += batch.num_rows
        yield batch.set_column(at, pa.field(BODY, pa.binary()), pa.array(bodies, pa.binary()))


def _plain(kind: pa.DataType, *, has_nulls: bool) -> Any:
    """Makes what turns a value of Arrow's into a plain one: maps become dicts."""
    if pa.types.is_struct(kind):
        inner = {
            one.name: _plain(one.type, has_nulls=has_nulls)
            for one in map(kind.field, range(kind.num_fields))
        }
        return lambda value: {
            name: None if value[name] is None else turn(value[name])
            for name, turn in inner.items()
            if has_nulls or value[name] is not None
        }
    if pa.types.is_list(kind):
        item = _plain(kind.value_type, has_nulls=has_nulls)
        return lambda value: [None if each is None else item(each) for each in value]
    if pa.types.is_map(kind):
        item = _plain(kind.item_type, has_nulls=has_nulls)
        return lambda value: {
            key: None if each is None else item(each) for key, each in dict(value).items()
        }
    return lambda value: value
