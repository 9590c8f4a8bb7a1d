"""The schemas of a registry that are known: a bounded cache before a source.

A number never changes its schema, so what was found is kept until the cache is full; the oldest
goes first. That there is no schema of a number is kept for a minute only. What cannot be asked is
an error each time, and never the body's fault.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar

from sprocket.schemas.errors import SchemaInvalid, SchemaNotFound
from sprocket.schemas.registered import RegisteredSchema, SchemaSource

Made = TypeVar("Made")

_KNOWN_MAX = 1_000
_MISSING_MAX = 10_000
_MISSING_SECONDS = 60.0


class SchemaCache(Generic[Made]):
    """What was made of schemas, by number.

    Args:
        source: of the schemas.
        make: makes of a schema what is kept.
        monotonic: the time in seconds.
    """

    def __init__(
        self,
        source: SchemaSource,
        make: Callable[[RegisteredSchema], Made],
        monotonic: Callable[[], float],
    ) -> None:
        self._source = source
        self._make = make
        self._now = monotonic
        self._known: dict[int, Made] = {}
        #: Why there is none, and until when that is believed.
        self._missing: dict[int, tuple[str, float]] = {}
        self._asked: dict[int, asyncio.Task[None]] = {}

    def get(self, schema_id: int) -> Made:
        """What belongs to a number; asks the source if it is not known, which blocks.

        Raises:
            SchemaNotFound: there is no such schema, or none that can be used.
            RegistryUnavailable: the source does not answer.
        """
        found = self._remembered(schema_id)
        if found is not None:
            return found
        return self._keep(schema_id, self._fetched(schema_id))

    async def prepare(self, schema_id: int) -> None:
        """Asks the source, without blocking the event loop, if a number is not known.

        Afterwards `get` does not block.

        Raises:
            RegistryUnavailable: the source does not answer.
        """
        try:
            if self._remembered(schema_id) is not None:
                return
        except SchemaNotFound:
            return
        task = self._asked.get(schema_id)
        if task is None or task.get_loop() is not asyncio.get_running_loop():
            task = self._asked[schema_id] = asyncio.ensure_future(self._ask(schema_id))
        await asyncio.shield(task)

    async def _ask(self, schema_id: int) -> None:
        try:
            self._keep(schema_id, await asyncio.to_thread(self._fetched, schema_id))
        except SchemaNotFound:
            pass  # it is remembered now
        finally:
            self._asked.pop(schema_id, None)

    def _fetched(self, schema_id: int) -> RegisteredSchema | str:
        """The schema, or why there is none."""
        try:
            return self._source.by_id(schema_id)
        except (SchemaNotFound, SchemaInvalid) as error:
            return str(error)

    def _remembered(self, schema_id: int) -> Made | None:
        found = self._known.get(schema_id)
        if found is None and schema_id in self._missing:
            reason, until = self._missing[schema_id]
            if self._now() < until:
                raise SchemaNotFound(reason)
        return found

    def _keep(self, schema_id: int, found: RegisteredSchema | str) -> Made:
        if isinstance(found, str):
            self._miss(schema_id, found)
            raise SchemaNotFound(found)
        try:
            made = self._make(found)
        except SchemaInvalid as error:
            reason = f"schema {schema_id} of the registry cannot be used: {error}"
            self._miss(schema_id, reason)
            raise SchemaNotFound(reason) from None
        _bounded(self._known, _KNOWN_MAX)[schema_id] = made
        return made

    def _miss(self, schema_id: int, reason: str) -> None:
        self._missing.pop(schema_id, None)
        _bounded(self._missing, _MISSING_MAX)[schema_id] = (reason, self._now() + _MISSING_SECONDS)


def _bounded(table: dict[int, Made], count_max: int) -> dict[int, Made]:
    """The table, with place for one entry."""
    while len(table) >= count_max:  # threads of listeners may do the same
        table.pop(next(iter(list(table))), None)
    return table
