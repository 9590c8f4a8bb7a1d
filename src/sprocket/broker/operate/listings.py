"""Long replies to operators, made in turns of the event loop.

A listing of 16,384 queues, or of all topics, takes 0.1 s and more. So it takes its rows from a
picture of the tables, makes a bounded number of them in one turn, and encodes them likewise. Only
one listing has its turn in an iteration of the loop, however many are asked for.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import msgspec

from sprocket.protocol import lenient_json
from sprocket.protocol.bodies.body import Body
from sprocket.protocol.command import Reply

T = TypeVar("T")

#: By loop, what the listings wait for between two turns, and before they are encoded.
_Gates = WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore]
_turns: _Gates = WeakKeyDictionary()
_encoders: _Gates = WeakKeyDictionary()

#: Rows that are made or encoded in one turn of the loop; each takes some 10 µs.
ROWS_AT_ONCE = 256

_write_standard = msgspec.json.Encoder().encode
Write = Callable[[Any], bytes]


async def next_turn() -> None:
    """Returns in a later iteration of the loop, when those that waited before had their turns.

    With `sleep(0)` alone, each of a thousand listings would do its part in every iteration.
    """
    async with _gate(_turns):
        await asyncio.sleep(0)


def _gate(gates: _Gates) -> asyncio.Semaphore:
    """The gate of the running loop, which lets in one at a time, in the order of arrival."""
    loop = asyncio.get_running_loop()
    gate = gates.get(loop)
    if gate is None:
        gate = gates[loop] = asyncio.Semaphore(1)
    return gate


async def in_turns(rows: Iterable[T], at_once: int = ROWS_AT_ONCE) -> AsyncIterator[T]:
    """The same rows, with a turn of the event loop for each `at_once` of them. They come from a
    copy, since others may change a table meanwhile."""
    for number, row in enumerate(rows):
        if number % at_once == 0:
            await next_turn()
        yield row


def listing(body: Body) -> Reply | Awaitable[Reply]:
    """The reply with a body: at once if its tables are short, otherwise in turns.

    Args:
        body: its tables must not change later, so they are copies.
    """
    tables = {
        name: table
        for name in body.__struct_fields__
        if _is_table(table := getattr(body, name)) and _is_long(table)
    }
    return _encoded(body, tables) if tables else Reply(body=body.encode())


async def listed(body: Body) -> Reply:
    """As `listing`, for endpoints that are coroutines."""
    reply = listing(body)
    return reply if isinstance(reply, Reply) else await reply


# One at a time: if a thousand were encoded side by side, all of their texts would be in memory
# before the first of them is finished, and a peer that reads nothing could not be found out.
async def _encoded(body: Body, tables: Mapping[str, Any]) -> Reply:
    async with _gate(_encoders):
        return await _written(body, tables)


# The body is encoded with empty tables, each as `"name":{}`. A table's own text replaces that.
async def _written(body: Body, tables: Mapping[str, Any]) -> Reply:
    await next_turn()
    write: Write = lenient_json.write if body.is_dialect else _write_standard
    emptied = {name: type(table)() for name, table in tables.items()}
    rest = msgspec.structs.replace(body, **emptied).encode()
    wire_names = dict(zip(body.__struct_fields__, body.__struct_encode_fields__, strict=True))
    places = []
    for name, table in tables.items():
        empty = b'"%s":%s' % (wire_names[name].encode(), write(emptied[name]))
        at = rest.find(empty)
        assert at >= 0, f"{type(body).__name__} leaves out {name} if it is empty"
        places.append((at + len(empty) - 2, table))
    parts: list[bytes] = []
    done = 0
    for at, table in sorted(places, key=lambda place: place[0]):
        parts.append(rest[done:at])
        done = at + 2
        for piece in _pieces(table, write):
            parts.append(piece)
            await next_turn()
    parts.append(rest[done:])
    return Reply(body=b"".join(parts))


def _pieces(value: Any, write: Write) -> Iterator[bytes]:
    """The text of a table, or of one of its rows, in pieces of a bounded size."""
    if isinstance(value, msgspec.Struct) and write is lenient_json.write:
        value = {name: part for name, part in lenient_json.entries(value) if part is not None}
    if not _is_table(value):
        yield write(value)
        return
    is_map = isinstance(value, Mapping)
    opening = b"{" if is_map else b"["
    some: list[Any] = []
    weight = 0
    for row in value.items() if is_map else value:
        own = _weight(row[1] if is_map else row)
        if some and weight + own > ROWS_AT_ONCE:
            yield opening + write(dict(some) if is_map else some)[1:-1]
            opening, some, weight = b",", [], 0
        if own > ROWS_AT_ONCE:
            yield opening + (write({row[0]: 0})[1:-2] if is_map else b"")
            yield from _pieces(row[1] if is_map else row, write)
            opening = b","
        else:
            some.append(row)
            weight += own
    if some or opening != b",":
        yield opening + write(dict(some) if is_map else some)[1:-1]
    yield b"}" if is_map else b"]"


def _is_table(value: Any) -> bool:
    return isinstance(value, dict | list)


def _is_long(table: dict[Any, Any] | list[Any]) -> bool:
    if len(table) > ROWS_AT_ONCE:
        return True
    return sum(map(_weight, table.values() if isinstance(table, dict) else table)) > ROWS_AT_ONCE


def _weight(value: Any) -> int:
    """How many rows a value counts for, up to a bit more than a turn's."""
    if isinstance(value, msgspec.Struct):
        value = [
            part for name in value.__struct_fields__ if _is_table(part := getattr(value, name))
        ]
        return 1 + sum(map(_weight, value))
    if not _is_table(value) or not value:
        return 1
    if len(value) > ROWS_AT_ONCE:
        return len(value)
    rows = iter(value.values() if isinstance(value, dict) else value)
    return (
        len(value)
        if isinstance(next(rows), str | int)
        else 1 + sum(map(_weight, value.values() if isinstance(value, dict) else value))
    )
