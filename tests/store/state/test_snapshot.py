"""State files."""

from __future__ import annotations

import errno
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sprocket.base.errors import StoreError, UsageError
from sprocket.store.state.snapshot import Snapshot, decode_state, encode_state
from sprocket.testing.disk import FaultyDisk, MemoryDisk

PATH = "/config/offsets.json"
TABLE = {"offsetTable": {"T@G": {0: 17, 1: 20}}}

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\ue000"), max_size=8)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | texts,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(texts, inner, max_size=3)
        | st.dictionaries(st.integers(-99, 99), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(st.dictionaries(texts, values, max_size=4))
def test_a_state_reads_back_as_it_was(state: dict[str, Any]) -> None:
    assert decode_state(encode_state(state)) == state


def test_the_text_is_javas() -> None:
    assert encode_state(
        {"a": {}, "b": ["x", "y"], "c": {0: 1, 1: 2}, "d": {"e": True, "f": None}}
    ) == (
        '{\n\t"a":{},\n\t"b":["x","y"],\n\t"c":{0:1,1:2\n\t},\n\t"d":{\n\t\t"e":true,\n\t\t"f":null\n\t}\n}'
    )


def test_number_keys_may_have_quotes_or_not() -> None:
    assert decode_state('{"t":{0:1, 1 :2}}') == {"t": {0: 1, 1: 2}}
    assert decode_state('{"t":{"0":1}}') == {"t": {"0": 1}}
    assert decode_state('{"t":"{0:1,2:3}"}') == {"t": "{0:1,2:3}"}
    assert decode_state('{"t":"a\\"{0:1"}') == {"t": 'a"{0:1'}


@pytest.mark.parametrize("text", ["", "[]", "1", "{", '{"a":1', '{"a":1}x', "\0\0\0", "{a:1}"])
def test_other_texts_are_no_states(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        decode_state(text)


def loaded(disk: MemoryDisk) -> tuple[Snapshot, dict[str, Any]]:
    snapshot = Snapshot(disk, PATH)
    return snapshot, snapshot.load()


def test_saved_state_is_loaded_by_the_next_process() -> None:
    disk = MemoryDisk()
    snapshot, state = loaded(disk)
    assert state == {}
    snapshot.save(TABLE)
    assert loaded(disk)[1] == TABLE


def test_nothing_is_saved_before_loading_is_done() -> None:
    disk = MemoryDisk()
    loaded(disk)[0].save(TABLE)
    with pytest.raises(UsageError):
        Snapshot(disk, PATH).save({})
    assert loaded(disk)[1] == TABLE


def test_the_version_before_is_the_backup() -> None:
    disk = MemoryDisk()
    snapshot, _ = loaded(disk)
    snapshot.save(TABLE)
    snapshot.save({"offsetTable": {}})
    assert decode_state((disk.read(PATH + ".bak") or b"").decode()) == TABLE


def test_the_same_state_is_not_written_again() -> None:
    disk = FaultyDisk()
    snapshot, _ = loaded(disk)
    snapshot.save(TABLE)
    disk.fail("replace")
    snapshot.save(TABLE)
    again, _ = loaded(disk)
    again.save(TABLE)
    with pytest.raises(OSError):  # noqa: PT011
        again.save({"offsetTable": {}})


@pytest.mark.parametrize("broken", [b"", bytes(40), b'{\n\t"offsetTable":{\n\t\t"T@', b"\xff\xfe"])
def test_a_broken_file_is_made_up_for_by_its_backup(broken: bytes) -> None:
    disk = MemoryDisk()
    snapshot, _ = loaded(disk)
    snapshot.save(TABLE)
    snapshot.save({"offsetTable": {"newer": {0: 1}}})
    disk.replace(PATH, broken, backup=False)
    again, state = loaded(disk)
    assert state == TABLE
    again.save({"offsetTable": {"newest": {0: 1}}})
    assert decode_state((disk.read(PATH + ".bak") or b"").decode()) == TABLE, "the good one is kept"


@pytest.mark.parametrize("broken", [bytes(40), b"{"])
def test_a_broken_file_without_a_good_backup_is_not_taken_for_nothing(broken: bytes) -> None:
    disk = MemoryDisk()
    snapshot, _ = loaded(disk)
    snapshot.save(TABLE)
    disk.replace(PATH, broken, backup=False)
    with pytest.raises(StoreError, match="repair"):
        loaded(disk)
    disk.replace(PATH + ".bak", broken, backup=False)
    with pytest.raises(StoreError, match="repair"):
        loaded(disk)


def test_an_empty_file_without_a_backup_is_an_empty_state() -> None:
    disk = MemoryDisk()
    disk.make_directory("/config")
    disk.replace(PATH, b"")
    assert loaded(disk)[1] == {}


def test_a_full_disk_leaves_the_old_state() -> None:
    disk = FaultyDisk()
    snapshot, _ = loaded(disk)
    snapshot.save(TABLE)
    disk.fail("replace", errno.ENOSPC)
    with pytest.raises(OSError):  # noqa: PT011
        snapshot.save({"offsetTable": {}})
    assert loaded(disk)[1] == TABLE
    snapshot.save({"offsetTable": {}})
    assert loaded(disk)[1] == {"offsetTable": {}}


def test_a_row_of_many_entries_is_written_like_a_short_one() -> None:
    long = {"t": {"a@g": dict.fromkeys(range(5_000), 1), "b@g": {str(n): {} for n in range(2_000)}}}
    assert decode_state(encode_state(long)) == long
    short = encode_state({"t": {"a": {0: 1, 1: 1}}})
    entries = ",".join(f"{n}:1" for n in range(5_000))
    assert encode_state({"t": {"a": long["t"]["a@g"]}}) == short.replace("0:1,1:1", entries)
