"""Schemas that were found are kept, those that are not there for a minute, within bounds."""

from __future__ import annotations

import asyncio
import threading

import pytest

from sprocket.schemas.errors import RegistryUnavailable, SchemaInvalid, SchemaNotFound
from sprocket.schemas.registered import RegisteredSchema, SchemaKind
from sprocket.schemas.registry import SchemaCache


class Source:
    """A source that counts what it is asked, and fails on request."""

    def __init__(self) -> None:
        self.asked: list[int] = []
        self.threads: set[int] = set()
        self.error: Exception | None = None

    def by_id(self, schema_id: int) -> RegisteredSchema:
        self.asked.append(schema_id)
        self.threads.add(threading.get_ident())
        if self.error is not None:
            raise self.error
        return RegisteredSchema(schema_id, SchemaKind.AVRO, f"schema {schema_id}")

    def latest(self, subject: str) -> RegisteredSchema:
        raise NotImplementedError


class Cached:
    """A cache over such a source, with a clock."""

    def __init__(self) -> None:
        self.source = Source()
        self.now = 0.0
        self.cache = SchemaCache(self.source, self.made, lambda: self.now)

    def made(self, schema: RegisteredSchema) -> str:
        if schema.schema_id == 13:
            raise SchemaInvalid("it is unlucky")
        return schema.text


def test_a_schema_is_asked_for_once() -> None:
    one = Cached()
    assert [one.cache.get(1), one.cache.get(1)] == ["schema 1"] * 2
    assert one.source.asked == [1]


def test_the_oldest_of_very_many_goes() -> None:
    one = Cached()
    for number in range(100, 1_101):
        one.cache.get(number)
    one.cache.get(1_100)
    assert len(one.source.asked) == 1_001
    one.cache.get(100)
    assert len(one.source.asked) == 1_002


@pytest.mark.parametrize("error", [SchemaNotFound("no 1"), SchemaInvalid("no 1")])
def test_that_there_is_none_is_believed_for_a_minute(error: Exception) -> None:
    one = Cached()
    one.source.error = error
    for _ in range(3):
        with pytest.raises(SchemaNotFound, match="no 1"):
            one.cache.get(1)
    assert one.source.asked == [1]
    one.now, one.source.error = 60.0, None
    assert one.cache.get(1) == "schema 1"


def test_a_schema_that_cannot_be_used_is_as_if_it_were_not_there() -> None:
    one = Cached()
    for _ in range(2):
        with pytest.raises(SchemaNotFound, match="schema 13 of the registry cannot be used"):
            one.cache.get(13)
    assert one.source.asked == [13]


def test_a_source_that_does_not_answer_is_asked_again() -> None:
    one = Cached()
    one.source.error = RegistryUnavailable("away")
    for _ in range(2):
        with pytest.raises(RegistryUnavailable):
            one.cache.get(1)
    assert one.source.asked == [1, 1]


def test_many_tasks_ask_once_and_not_on_the_loop() -> None:
    async def story() -> None:
        one = Cached()
        await asyncio.gather(*(one.cache.prepare(1) for _ in range(20)))
        assert one.cache.get(1) == "schema 1"
        assert one.source.asked == [1]
        assert threading.get_ident() not in one.source.threads

    asyncio.run(story())


def test_preparing_what_is_not_there_is_no_error_and_being_away_is_one() -> None:
    async def story() -> None:
        one = Cached()
        one.source.error = SchemaNotFound("no 1")
        await one.cache.prepare(1)
        with pytest.raises(SchemaNotFound):
            one.cache.get(1)
        one.source.error = RegistryUnavailable("away")
        with pytest.raises(RegistryUnavailable):
            await one.cache.prepare(2)

    asyncio.run(story())
