"""Which members a master has in its in-sync set; what counts while an elector does not answer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from sprocket.base.errors import SprocketError
from sprocket.base.watermark import Watermark
from sprocket.broker.members.in_sync_upkeep import InSyncUpkeep, SyncRules, leaves
from sprocket.election.elector import ElectionRefused, ElectorUnavailable, GroupView
from sprocket.replication.copies import CopyRules
from sprocket.replication.in_sync_copies import InSyncCopies, MemberProgress
from sprocket.testing.loop import simulate
from sprocket.testing.network import Network

RULES = SyncRules(silent=1.2, behind=15.0)
LEASE = 3.0


@pytest.mark.parametrize(
    ("member", "now", "does"),
    [
        (None, 101.0, False),
        (None, 101.3, True),
        (MemberProgress(heard_at=110.0, caught_up_at=110.0), 111.0, False),
        (MemberProgress(heard_at=110.0, caught_up_at=110.0), 111.3, True),
        (MemberProgress(heard_at=125.0, caught_up_at=110.5), 125.4, False),
        (MemberProgress(heard_at=125.0, caught_up_at=110.0), 125.4, True),
        (MemberProgress(heard_at=110.0), 110.1, False),
        (MemberProgress(heard_at=115.0), 115.1, True),
    ],
)
def test_a_member_leaves_that_is_silent_or_behind_for_long(
    member: MemberProgress | None, now: float, does: bool
) -> None:
    assert leaves(member, RULES, began=100.0, now=now) is does


class SilentElector:
    """Takes changes of the set, and answers as a test says."""

    def __init__(self) -> None:
        self.view = GroupView(3, 1, frozenset({1}), 7)
        self.changes = Watermark()
        self.error: SprocketError | None = None
        self.asked: list[frozenset[int]] = []
        self.counted: list[int] = []
        self.copies = InSyncCopies(1, CopyRules(2, 2))

    async def set_in_sync(self, members: frozenset[int], seen: GroupView) -> GroupView:
        self.asked.append(members)
        self.counted.append(self.copies.readable(100))
        await asyncio.sleep(0.01)
        if self.error is not None:
            raise self.error
        self.show(members)
        return self.view

    def show(self, members: frozenset[int]) -> None:
        self.view = self.view._replace(in_sync=members, set_epoch=self.view.set_epoch + 1)
        self.changes.rise(self.changes.value + 1)


def play(test: Callable[[SilentElector], Awaitable[None]]) -> None:
    async def main(network: Network) -> None:
        elector = SilentElector()
        upkeep = InSyncUpkeep(
            elector,  # type: ignore[arg-type]
            elector.copies,
            number=1,
            lease=LEASE,
            behind_ms=lambda: 15_000,
            log_end=lambda: 100,
            on_change=lambda: None,
        )
        running = asyncio.ensure_future(upkeep.run())
        await test(elector)
        running.cancel()

    simulate(main)


def report(elector: SilentElector, member: int, offset: int) -> None:
    now = asyncio.get_running_loop().time()
    elector.copies.report(member, member, offset, end=100, now=now)


async def reports(elector: SilentElector, seconds: float, **offsets: int) -> None:
    """Members report several times."""
    for _ in range(round(seconds / 0.1)):
        for member, offset in offsets.items():
            report(elector, int(member.removeprefix("m")), offset)
        await asyncio.sleep(0.1)


def test_a_member_that_has_everything_enters_and_counts_from_before_the_request_on() -> None:
    async def test(elector: SilentElector) -> None:
        await asyncio.sleep(0.1)
        report(elector, 2, 100)
        elector.error = ElectorUnavailable("away")
        await reports(elector, 1.0, m2=100)
        assert elector.asked[0] == {1, 2}
        report(elector, 2, 100)
        assert not elector.copies.is_alone
        elector.error = None
        await reports(elector, 1.0, m2=100)
        assert elector.view.in_sync == {1, 2}
        assert elector.copies.in_sync == {1, 2}

    play(test)


def test_a_member_that_is_silent_counts_until_the_elector_has_answered() -> None:
    async def test(elector: SilentElector) -> None:
        elector.show(frozenset({1, 2}))
        await reports(elector, 1.0, m2=50)
        assert elector.copies.readable(100) == 50
        elector.error = ElectorUnavailable("away")
        await asyncio.sleep(2 * LEASE)
        assert elector.asked[-1] == {1}
        assert elector.copies.readable(100) == 50
        elector.error = None
        await asyncio.sleep(LEASE)
        assert elector.copies.readable(100) == 100
        assert set(elector.counted) == {50}

    play(test)


def test_a_refused_change_goes_on_to_count_until_another_set_is_seen() -> None:
    async def test(elector: SilentElector) -> None:
        elector.error = ElectionRefused("the view is old")
        await reports(elector, 1.0, m2=100)
        assert not elector.copies.is_alone
        elector.error = None
        elector.show(frozenset({1, 3}))
        await asyncio.sleep(0.05)
        assert elector.copies.in_sync >= {1, 3}

    play(test)
