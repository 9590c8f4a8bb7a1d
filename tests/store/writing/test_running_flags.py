"""Why nothing can be appended."""

from __future__ import annotations

from itertools import permutations

import pytest

from sprocket.base.errors import DiskFull, StoreError
from sprocket.store.writing.running_flags import RunningFlags

FULL, FAILED = DiskFull("full"), StoreError("failed")


def test_messages_are_refused_until_the_store_is_open() -> None:
    flags = RunningFlags()
    assert str(flags.refusal) == "the store is not open"
    flags.open()
    assert flags.refusal is None


def test_a_full_disk_counts_until_it_has_room() -> None:
    flags = RunningFlags()
    flags.open()
    flags.fill(FULL)
    assert flags.refusal is FULL
    assert flags.is_full
    flags.free()
    assert flags.refusal is None
    assert not flags.is_full


@pytest.mark.parametrize("order", list(permutations(range(4))))
def test_the_weightiest_reason_counts_whichever_came_first(order: tuple[int, ...]) -> None:
    flags = RunningFlags()
    steps = [flags.open, lambda: flags.fill(FULL), lambda: flags.fail(FAILED), flags.close]
    for number in order:
        steps[number]()
    assert str(flags.refusal) == "the store is closed"
    assert (flags.is_closed, flags.has_failed, flags.is_full) == (True, True, False)


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_a_failed_disk_stays_failed(order: tuple[int, ...]) -> None:
    flags = RunningFlags()
    steps = [flags.open, lambda: flags.fill(FULL), lambda: flags.fail(FAILED)]
    for number in order:
        steps[number]()
    assert flags.refusal is FAILED
    flags.free()
    assert flags.refusal is FAILED
    assert not flags.is_full
