"""What was delivered elsewhere, kept and handed over."""

from __future__ import annotations

import json
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sprocket.base.errors import RemoteProtocolError
from sprocket.broker.tables.escaped import EscapedTable, unpacked

_OFFSETS = st.sets(st.integers(0, 1 << 50), max_size=50)


@given(_OFFSETS, _OFFSETS)
def test_a_table_comes_over_the_wire_and_out_of_its_file_as_it_was(
    one: set[int], other: set[int]
) -> None:
    table = EscapedTable()
    for each in one:
        table.add(each)
    assert unpacked(table.packed()) == one
    again = EscapedTable()
    shared = again.log_offsets
    again.load(json.loads(json.dumps(table.to_json())))
    assert again.log_offsets == one
    assert again.merge(other, log_end=1 << 51) == len(other - one)
    assert shared == one | other, "whoever holds the set sees all of it"


def test_what_is_beyond_this_log_was_not_copied_from_it() -> None:
    table = EscapedTable()
    assert table.merge({-1, 5, 99, 100, 1 << 60}, log_end=100) == 2
    assert table.log_offsets == {5, 99}
    assert table.is_changed


def test_only_what_changes_it_is_a_change() -> None:
    table = EscapedTable()
    table.merge([], log_end=10)
    table.forget([3])
    assert not table.is_changed
    table.add(3)
    table.is_changed = False
    table.forget([3, 4])
    assert table.is_changed
    assert not table.log_offsets


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[1,2]",
        zlib.compress(b"[1,2")[:-1],
        zlib.compress(b'["a"]'),
        zlib.compress(b"[1," + b"1," * (40 << 20) + b"1]", 1),
    ],
    ids=["empty", "plain", "cut", "texts", "long"],
)
def test_anything_else_is_refused(body: bytes) -> None:
    with pytest.raises(RemoteProtocolError):
        unpacked(body)


@pytest.mark.parametrize("state", [{"logOffsets": {}}, {"logOffsets": ["x"]}])
def test_a_file_of_another_form_is_refused(state: dict[str, object]) -> None:
    if state["logOffsets"]:
        with pytest.raises(ValueError, match="invalid literal"):
            EscapedTable().load(state)
    else:
        EscapedTable().load(state)
