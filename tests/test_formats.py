"""The byte tables of `docs/formats` say what the code declares: place and size of every field."""

from __future__ import annotations

import re
import struct
from pathlib import Path

import pytest

from sprocket.delay.timers import timer_check, timer_log, wheel
from sprocket.message import record
from sprocket.message.hosts import V4_BYTES, V6_BYTES
from sprocket.protocol import frame, header_binary
from sprocket.replication import epoch_frames, frames
from sprocket.store.state import checkpoint
from sprocket.store.views import batch_unit, consume_queue, index_file

FORMATS = Path(__file__).resolve().parent.parent / "docs" / "formats"

Places = list[tuple[int, int]]


def tables(page: str) -> list[list[dict[str, str]]]:
    """The tables of a page that have a column of bytes: a dict of cells for each row."""
    found = []
    for block in re.findall(r"(?:^\|.*\|\n)+", (FORMATS / page).read_text(), re.MULTILINE):
        head, _, *rows = [
            [cell.strip() for cell in line.strip("|").split("|")] for line in block.splitlines()
        ]
        head = ["at" if name.endswith(" at") else name for name in head]
        if {"at", "bytes"} <= set(head):
            found.append([dict(zip(head, row, strict=True)) for row in rows])
    return found


def told(table: list[dict[str, str]]) -> Places:
    """Place and size of the rows that have both as plain numbers."""
    return [
        (int(row["at"]), int(row["bytes"]))
        for row in table
        if row["at"].isdigit() and row["bytes"].isdigit()
    ]


def declared(*parts: struct.Struct | tuple[int, struct.Struct]) -> Places:
    """Place and size of the fields of structs that follow each other, or begin at a place."""
    places, at = [], 0
    for part in parts:
        if isinstance(part, tuple):
            at, part = part
        for item in re.findall(r"\d*[a-zA-Z?]", part.format):
            items = [item] if item[-1] in "sx" else [item[-1]] * int(item[:-1] or 1)
            for each in items:
                size = struct.calcsize(f">{each}")
                if each[-1] != "x":
                    places.append((at, size))
                at += size
    return places


def test_structs_are_taken_apart() -> None:
    assert declared(struct.Struct(">i8sq"), struct.Struct(">2h")) == [
        (0, 4), (4, 8), (12, 8), (20, 2), (22, 2),
    ]  # fmt: skip
    assert declared((64, struct.Struct(">4xB"))) == [(68, 1)]


@pytest.mark.parametrize(
    ("page", "number", "places"),
    [
        ("replication.md", 0, declared(frames.REPORT)),
        ("replication.md", 1, declared(frames.HEAD)),
        ("replication.md", 2, declared(epoch_frames.SLAVE_HELLO)),
        ("replication.md", 3, declared(epoch_frames.MASTER_HELLO)),
        ("replication.md", 4, declared(epoch_frames.SLAVE_REPORT)),
        ("replication.md", 5, declared(epoch_frames.DATA_HEAD)),
        ("consume-queue.md", 0, declared(consume_queue.ENTRY)),
        ("batch-queue.md", 0, declared(batch_unit.UNIT)),
        ("key-index.md", 0, declared(index_file.HEADER)),
        ("key-index.md", 1, declared(index_file.ENTRY)),
        (
            "state-files.md",
            0,
            declared(
                checkpoint._JAVA,
                (checkpoint._OURS_AT, checkpoint._OURS),
                checkpoint._CRC,
                (checkpoint._FLUSHED_AT, checkpoint._FLUSHED),
                checkpoint._CRC,
            ),
        ),
        ("timers.md", 0, declared(wheel.SLOT)),
        ("timers.md", 1, declared(timer_log.UNIT)),
        (
            "timers.md",
            2,
            [
                *declared(timer_check.JAVA_PART),
                (timer_check.JAVA_PART.size, timer_check._VERSION.size),
                *declared((timer_check._OURS_AT, timer_check._OURS), timer_check._CRC),
            ],
        ),
        ("frame.md", 1, declared(header_binary._FIXED)),
    ],
)
def test_a_table_has_the_fields_that_are_declared(page: str, number: int, places: Places) -> None:
    assert told(tables(page)[number]) == places


def test_the_record_s_head_is_the_declared_one() -> None:
    """Its hosts have two sizes; and its fields have names, of which each row has all words."""
    rows = tables("record.md")[0]
    rows = rows[: len(record._FIELDS)]
    addresses = f"{V4_BYTES - 4} or {V6_BYTES - 4}, 4"
    sizes = [
        V4_BYTES if row["bytes"] == addresses else int(row["bytes"].removesuffix(", n"))
        for row in rows
    ]
    places = [(int(row["at"]), size) for row, size in zip(rows, sizes, strict=True)]
    assert places == declared(record._HEADS[0])
    for row, name in zip(rows, record._FIELDS, strict=True):
        assert all(word in row["what"].lower() for word in name.split("_")), (row, name)
    text = (FORMATS / "record.md").read_text()
    assert f"from {record.STORED_AT} on" in text
    assert f"by {V6_BYTES - V4_BYTES} for each IPv6 address" in text


def test_the_frame_begins_with_the_declared_lengths() -> None:
    table = tables("frame.md")[0]
    places = told(table)
    assert [at for at, _ in places] == [0, *(at + size for at, size in places[:-1])]
    assert sum(size for _, size in places) == frame.PREFIX_BYTES == frame._PREFIX.size
    assert table[len(places)]["at"] == str(frame.PREFIX_BYTES)


def test_what_follows_the_binary_header_s_fixed_part_is_where_it_is_said() -> None:
    table = tables("frame.md")[1]
    fixed = header_binary._FIXED.size
    length = header_binary._LENGTH.size
    assert [row["at"] for row in table[-3:]] == [
        str(fixed), f"{fixed} + r", f"{fixed + length} + r",
    ]  # fmt: skip


def test_constants_that_pages_name_are_the_declared_ones() -> None:
    def has(page: str, text: str) -> None:
        assert text in (FORMATS / page).read_text(), (page, text)

    for magic in (record.MAGIC, record.MAGIC_LONG_TOPIC, record.BLANK_MAGIC):
        has("record.md", f"`{magic & 0xFFFFFFFF:08X}`")
    has("consume-queue.md", f"position {consume_queue.ENTRY_BYTES} n")
    has("consume-queue.md", f"`{consume_queue.DAMAGED_CODE:016X}`")
    has("batch-queue.md", f"position {batch_unit.UNIT_BYTES} n")
    has("key-index.md", f"at {index_file.HEADER.size} + {index_file.SLOT.size} slots + ")
    has("key-index.md", f"slots + {index_file.ENTRY.size} n")
    has("timers.md", f"{wheel.SLOTS:,} slots of {wheel.SLOT_BYTES} bytes")
    has("timers.md", f" of {timer_log.UNIT_BYTES} bytes, appended")
    has("timers.md", f"{timer_check.FILE_BYTES} bytes")
    java, ours = checkpoint._JAVA.size, checkpoint._OURS_AT
    has(
        "state-files.md",
        f"CRC-32 of bytes 0 to {java} and {ours} to {ours + checkpoint._OURS.size}",
    )
    java, ours = timer_check.JAVA_PART.size, timer_check._OURS_AT
    has("timers.md", f"CRC-32 of bytes 0 to {java} and {ours} to {ours + timer_check._OURS.size}")
