"""The columns that bodies are decoded into: `value`, `value_error` and `event`.

A body that does not fit is a row like any other, without a value and with the reason. Only a
registry that does not answer raises, since it says nothing of the bodies.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from sprocket.base.errors import SprocketError, UsageError
from sprocket.spark.records.schema import EVENT, VALUE, VALUE_ERROR

if TYPE_CHECKING:
    from sprocket.schemas.cloud_events import CloudEvent
    from sprocket.spark.options.body_options import DecodeOptions

logger = logging.getLogger(__name__)


class BadBody(SprocketError):
    """A body does not fit, and `failOnBadBody` is true."""


def check_decoded(options: DecodeOptions, names: Sequence[str]) -> None:
    """Raises UsageError if a column needs an option that is not given."""
    for name in (VALUE, VALUE_ERROR):
        if name in names and options.body_format is None:
            raise UsageError(
                f"the rocketmq source has no column {name}: did you mean body? Option bodyFormat "
                "decodes it"
            )
    if EVENT in names and options.event_prefix is None:
        raise UsageError(f"column {EVENT} needs option cloudEvents")


def body_columns(options: DecodeOptions, schema: pa.Schema) -> BodyColumns | None:
    """What makes the columns of decoded bodies in a schema; None if it has none."""
    has_any = any(name in schema.names for name in (VALUE, VALUE_ERROR, EVENT))
    return BodyColumns(options, schema) if has_any else None


class BodyColumns:
    """Decodes the bodies of one task.

    Args:
        options: of the read.
        schema: with at least one of the columns.
    """

    def __init__(self, options: DecodeOptions, schema: pa.Schema) -> None:
        # Only a read that decodes bodies loads the decoders.
        from sprocket.schemas.arrow_columns import ValueColumn

        self._prefix = options.event_prefix
        self._fails = options.fails_on_misfit
        self._event = None
        if EVENT in schema.names:
            self._event = ValueColumn(schema.field(EVENT).type)
        self._codec = None
        if options.body_format is not None:
            self._codec = options.choice(None).codec()
            kind = schema.field(VALUE).type if VALUE in schema.names else None
            self._column = None if kind is None else ValueColumn(kind)
        self._rows = 0
        self._misfits = 0
        self._first = ""

    @property
    def reads_properties(self) -> bool:
        """Whether the properties of messages are needed."""
        return self._prefix is not None

    def of(
        self, bodies: pa.Array, properties: Callable[[], pa.Array] | None
    ) -> dict[str, pa.Array]:
        """The columns of some rows.

        Raises:
            BadBody: a body does not fit, and that is to fail.
            RegistryUnavailable: a schema has to be fetched, and cannot be.
        """
        contents: list[bytes] = bodies.to_pylist()
        maps = [None] * len(contents) if properties is None else properties().to_pylist()
        values, errors, events = [], [], []
        for content, pairs in zip(contents, maps, strict=True):
            value, error, event = self._row(content, pairs)
            values.append(value)
            errors.append(error)
            events.append(event)
        made = {VALUE_ERROR: pa.array(errors, pa.string())}
        if self._event is not None:
            made[EVENT] = self._event.array(events)
        if self._codec is not None and self._column is not None:
            made[VALUE] = self._column.array(values)
        return made

    def report(self, place: object) -> None:
        """Logs how many bodies of a task did not fit, if any."""
        if self._misfits:
            logger.warning(
                "%s: %d of %d bodies do not fit; the first: %s",
                place, self._misfits, self._rows, self._first,
            )  # fmt: skip

    def _row(self, content: bytes, pairs: Any) -> tuple[Any, str | None, Any]:
        from sprocket.schemas.cloud_events import event_of
        from sprocket.schemas.errors import BodyMismatch

        self._rows += 1
        event = None
        try:
            if self._prefix is not None:
                found = event_of(dict(pairs or ()), content, self._prefix)
                if found is not None:
                    event = None if self._event is None else self._event.fitted(_row_of(found))
                    if found.data is None:
                        return None, None, event
                    content = found.data
            if self._codec is None:
                return None, None, event
            value = self._codec.decode(content)
            return (None if self._column is None else self._column.fitted(value)), None, event
        except BodyMismatch as error:
            self._misfits += 1
            self._first = self._first or str(error)
            if self._fails:
                raise BadBody(f"a body does not fit: {error}") from None
            return None, str(error), event


def _row_of(event: CloudEvent) -> dict[str, Any]:
    return {**event.attributes, "time": event.time, "extensions": dict(event.extensions)}
