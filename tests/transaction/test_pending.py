from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path

from sprocket.testing.clock import ManualClock
from sprocket.transaction.half import Half
from sprocket.transaction.ledger import EndState, Ledger
from sprocket.transaction.pending import UndecidedCounts

STORES = Path(__file__).parents[1] / "golden" / "stores"


def half(offset: int, topic: str, root: int = -1) -> Half:
    return Half(offset, offset if root < 0 else root, 0, 0, 0, topic=topic)


def counts(table: UndecidedCounts) -> dict[str, tuple[int, int]]:
    shown = table.to_json()["transactionCount"]
    return {topic: (each["count"], each["timeStamp"]) for topic, each in shown.items()}


def test_it_counts_what_is_undecided_and_when_that_changed_last() -> None:
    clock, ledger = ManualClock(1_000), Ledger()
    table = UndecidedCounts(ledger, clock)
    assert counts(table) == {}
    for offset, topic in enumerate("aab"):
        ledger.add(half(offset, topic))
    assert counts(table) == {"a": (2, 1_000), "b": (1, 1_000)}
    clock.move(500)
    ledger.settle(0, EndState.COMMITTED)
    ledger.add(half(3, "a", root=1))  # a copy is no other transaction
    ledger.discard(2)
    assert counts(table) == {"a": (1, 1_500), "b": (0, 1_500)}
    ledger.validate()


def test_it_is_changed_until_it_is_saved() -> None:
    ledger = Ledger()
    table = UndecidedCounts(ledger, ManualClock(0))
    assert not table.is_changed
    ledger.add(half(0, "a"))
    assert table.is_changed
    table.is_changed = False
    assert not table.is_changed
    table.is_changed = True  # the save failed
    assert table.is_changed


def test_the_file_has_the_form_of_javas() -> None:
    with tarfile.open(STORES / "clean.tar.gz") as store:
        file = store.extractfile("clean/config/transactionMetrics")
        assert file is not None
        theirs = json.load(io.TextIOWrapper(file))
    ledger = Ledger()
    for offset in range(3):
        ledger.add(half(offset, "StTx"))
    clock = ManualClock(theirs["transactionCount"]["StTx"]["timeStamp"])
    ours = UndecidedCounts(ledger, clock).to_json()
    assert ours["transactionCount"] == theirs["transactionCount"]
    assert set(ours["dataVersion"]) == set(theirs["dataVersion"])
