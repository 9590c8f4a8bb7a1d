"""`sprocket store`: looking at a folder, and mending it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sprocket.runtime.clock import SystemClock
from sprocket.runtime.disk import SystemDisk
from sprocket.store.config import StoreConfig
from sprocket.store.store import Store
from sprocket.store.views.tag_codes import TAGS_ONLY
from tests.cli.parts import sprocket
from tests.store.making import HOST, a_draft
from tests.support import run

SIZES = {"log_file_bytes": 4096, "queue_file_bytes": 400, "index_slots": 8, "index_entries": 64}
SET = [text for name, value in SIZES.items() for text in ("--set", f"store.{name}={value}")]


async def opened(folder: Path) -> Store:
    config = StoreConfig(**SIZES)  # type: ignore[arg-type]
    return await Store.open(
        disk=SystemDisk(),
        clock=SystemClock(),
        root=str(folder),
        config=config,
        store_host=HOST,
        tag_codes=TAGS_ONLY,
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A stopped store of sixty messages in several files."""

    async def fill() -> None:
        store = await opened(tmp_path)
        for n in range(60):
            store.append(a_draft(b"body %d" % n, queue_number=n % 2))
        await store.close()

    run(fill())
    return tmp_path


def damage(folder: Path) -> int:
    """Breaks the body of the sixth message; its log offset."""
    lines = sprocket("store", "dump", str(folder), "--json").lines
    place = int(json.loads(lines[5])["log_offset"])
    path = folder / "commitlog" / f"{0:020d}"
    raw = bytearray(path.read_bytes())
    raw[place + 88] ^= 1
    path.write_bytes(raw)
    return place


def test_a_whole_store_is_said_to_be(folder: Path) -> None:
    outcome = sprocket("store", "verify", str(folder), *SET)
    assert outcome.code == 0
    (line,) = outcome.lines
    assert line.startswith("60 records in log offsets 0 to ")
    assert line.endswith("60 queue entries, 0 key index entries: no faults")


def test_damage_is_told_with_its_place_and_ends_with_code_1(folder: Path) -> None:
    place = damage(folder)
    outcome = sprocket("store", "verify", str(folder), *SET, "--json")
    assert outcome.code == 1
    finding, summary = map(json.loads, outcome.lines)
    assert finding["path"] == f"{folder}/commitlog/{0:020d}"
    assert (finding["position"], finding["log_offset"], finding["is_fault"]) == (place, place, True)
    assert summary["faults"] == 1
    outcome = sprocket("store", "verify", str(folder), *SET)
    assert outcome.lines[0].startswith(f"FAULT log: {folder}/commitlog/{0:020d} at byte {place}: ")


def test_a_running_broker_is_looked_at_and_not_mended(folder: Path) -> None:
    async def check() -> None:
        store = await opened(folder)
        outcome = sprocket("store", "verify", str(folder), *SET)
        assert outcome.code == 0
        assert outcome.lines[0].startswith("note  store: ")
        assert "a process has it open" in outcome.lines[0]
        assert len(sprocket("store", "dump", str(folder), "--json").lines) == 60
        outcome = sprocket("store", "repair", str(folder), "--skip-damaged", "--yes")
        assert outcome.code == 1
        assert "in use by another process" in outcome.err
        await store.close()

    run(check())


def test_records_are_shown_as_text_or_hexadecimal(folder: Path) -> None:
    outcome = sprocket("store", "dump", str(folder), "-t", "orders", "-q", "1", "--from", "28")
    assert [line.strip() for line in outcome.lines[1::2]] == ["body 57", "body 59"]
    assert " orders:1:28 " in outcome.lines[0]
    outcome = sprocket("store", "dump", str(folder), "--count", "1", "--body", "hex", "--json")
    (facts,) = map(json.loads, outcome.lines)
    assert bytes.fromhex(facts["body"]) == b"body 0"
    assert (facts["topic"], facts["queue"], facts["queue_offset"]) == ("orders", 0, 0)
    outcome = sprocket("store", "dump", str(folder), "--body", "none", "--count", "2")
    assert len(outcome.lines) == 2
    assert sprocket("store", "dump", str(folder), "--body", "x").code == 2


def test_nothing_is_mended_without_yes(folder: Path) -> None:
    damage(folder)
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    outcome = sprocket("store", "repair", str(folder), "--skip-damaged")
    assert outcome.code == 0
    assert outcome.lines[0].startswith("would skip ")
    assert outcome.lines[-1] == "run again with --yes to do it"
    after = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert after == before


def test_what_is_damaged_is_passed_over(folder: Path) -> None:
    damage(folder)
    outcome = sprocket("store", "repair", str(folder), "--skip-damaged", "--yes")
    assert outcome.code == 0
    assert outcome.lines[-1].startswith(f"removed files are in {folder}/removed/")
    assert sprocket("store", "verify", str(folder), *SET).code == 0
    again = sprocket("store", "repair", str(folder), "--skip-damaged", "--yes")
    assert again.lines == ["there is nothing to do"]
    assert again.code == 1


def test_the_log_is_cut_and_views_are_built_anew(folder: Path) -> None:
    place = damage(folder)
    arguments = ("store", "repair", str(folder), "--cut-at", str(place), "--rebuild-views")
    outcome = sprocket(*arguments, "--yes", "--json")
    assert json.loads(outcome.out)["done"] is True

    async def count() -> int:
        store = await opened(folder)
        ends = [int(store.max_offset("orders", n)) for n in range(2)]
        await store.close()
        return sum(ends)

    assert run(count()) == 5
    assert sprocket("store", "verify", str(folder), *SET).code == 0


@pytest.mark.parametrize(
    "choices", [(), ("--cut-at", "0", "--skip-damaged"), ("--cut-at", "1"), ("--cut-at", "-1")]
)
def test_a_choice_that_cannot_be_is_refused(folder: Path, choices: tuple[str, ...]) -> None:
    assert sprocket("store", "repair", str(folder), *choices).code == 2


def test_a_start_with_damage_names_the_command(folder: Path) -> None:
    async def fill() -> None:
        store = await opened(folder)
        for n in range(60):
            store.append(a_draft(b"more %d" % n))
        await store.close()

    run(fill())
    (folder / "commitlog" / f"{4096:020d}").unlink()
    ports = ("--nameserver-port", "0", "--broker-port", "0")
    outcome = sprocket("standalone", "--store", str(folder), *SET, *ports)
    assert outcome.code == 1
    (line,) = [line for line in outcome.err.splitlines() if line.startswith("sprocket: ")]
    assert f"{4096:020d} is damaged at byte 0 (log offset 4096): the file is missing" in line
    assert f"`sprocket store verify {folder}`" in line


def test_a_folder_without_a_store_is_refused(tmp_path: Path) -> None:
    outcome = sprocket("store", "verify", str(tmp_path / "nothing"))
    assert (outcome.code, outcome.out) == (1, "")
    assert "there is no store in" in outcome.err
