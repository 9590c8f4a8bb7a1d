"""A master and its slaves through bad links, kills, losses of power and bad disks."""

from __future__ import annotations

import asyncio

import pytest

from sprocket.replication.copies import Copies
from sprocket.replication.slave import Slave
from sprocket.replication.slave_link import SlaveLink
from sprocket.store.log.commit_log import CommitLog
from sprocket.testing.plays import play
from sprocket.testing.replicated import REPLICATED
from tests.sim.planting import Plant, assert_found

SEEDS_PER_TEST = 2


@pytest.mark.parametrize("name", REPLICATED)
def test_logs_are_the_masters_and_what_is_acknowledged_is_in_enough_of_them(name: str) -> None:
    for seed in range(1, 1 + SEEDS_PER_TEST):
        assert play(name, seed).acknowledged > 0


@pytest.mark.parametrize("seed", [172, 178])
def test_senders_find_a_master_that_is_back_although_its_slaves_kept_its_route(seed: int) -> None:
    """They kept the route without a master for half a minute."""
    assert play("replicas-kills", seed).acknowledged > 0


def counts_itself_twice(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Copies, "replicated", lambda self, count, end: end)


def writes_another_byte(patch: pytest.MonkeyPatch) -> None:
    right = CommitLog.write

    def write(self: CommitLog, records: memoryview) -> None:
        right(self, records)
        self.buffer[self.end - self.base - 1] ^= 1

    patch.setattr(CommitLog, "write", write)


def gives_up_when_a_link_breaks(patch: pytest.MonkeyPatch) -> None:
    right = Slave._copy_from

    async def copy_once(self: Slave, address: str) -> None:
        try:
            await right(self, address)
        except Exception:
            if self._log.end:
                await asyncio.sleep(10_000)
            raise

    patch.setattr(Slave, "_copy_from", copy_once)


def sends_whether_it_is_read_or_not(patch: pytest.MonkeyPatch) -> None:
    async def drained(self: SlaveLink) -> None:
        await asyncio.sleep(0)

    patch.setattr(SlaveLink, "drained", drained)


@pytest.mark.parametrize(
    ("plant", "name", "told"),
    [
        (counts_itself_twice, "replicas-links", "was acknowledged and is in"),
        (writes_another_byte, "replicas", "differs from its master"),
        (gives_up_when_a_link_breaks, "replicas-links", "not all slaves have the whole log"),
        (sends_whether_it_is_read_or_not, "replicas-lag", "a slave that does not read"),
    ],
)
def test_a_broken_promise_is_found(
    plant: Plant, name: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert_found(plant, name, told, monkeypatch)
