"""Notices to the members of large groups: bounded work for each turn, and none is left out."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import AsyncExitStack

import pytest

from sprocket.broker.members import notices
from sprocket.broker.members.notices import PAUSE_SECONDS, SMALL_GROUP_MAX, MemberNotices
from sprocket.broker.tables.clients import ClientInfo, ClientTable, GroupMode
from sprocket.testing.loop import simulate
from tests.broker.parts import Asker, another, play, settle

MODE = GroupMode("CONSUME_PASSIVELY", "CLUSTERING", "")
COUNT = 2 * SMALL_GROUP_MAX


def test_each_change_of_a_small_group_is_sent_at_once() -> None:
    async def test(asker: Asker) -> None:
        async with AsyncExitStack() as stack:
            others = [await stack.enter_async_context(another(asker)) for _ in range(3)]
            for number, each in enumerate(others):
                await each.beat("g", client_id=f"c{number}", topics={"T": "*"})
                await settle(3)
                assert len(others[0].told) == number + 1
                assert len(each.told) == 1

    play(test)


def test_members_of_a_large_group_that_come_and_go_together_cost_few_notices() -> None:
    async def test(asker: Asker) -> None:
        await asker.beat("g", client_id="first", topics={"T": "*"})
        async with AsyncExitStack() as stack:
            others = [await stack.enter_async_context(another(asker)) for _ in range(COUNT)]
            beats = (
                each.beat("g", client_id=f"c{number}", topics={"T": "*"})
                for number, each in enumerate(others)
            )
            await asyncio.gather(*beats)
            asker.told.clear()
            for each in others:
                each.told.clear()
            await asyncio.sleep(2 * PAUSE_SECONDS)
            assert {len(each.told) for each in (asker, *others)} == {1}
            asker.told.clear()
        await asyncio.sleep(2 * PAUSE_SECONDS)
        await settle()
        assert 1 <= len(asker.told) <= SMALL_GROUP_MAX + 2

    play(test)


def test_a_turn_of_the_loop_sends_a_bounded_number(monkeypatch: pytest.MonkeyPatch) -> None:
    turns: list[int] = []
    monkeypatch.setattr(
        notices, "notify_members", lambda group, some: turns.append(len(_list(some)))
    )

    async def main() -> None:
        clients = ClientTable(members_max=10_000)
        sender = MemberNotices(clients)
        running = asyncio.create_task(sender.run())
        for number in range(1_000):
            clients.consumer_heartbeat(
                "g", ClientInfo(number, f"c{number}", "a", "PYTHON", 0, 0), mode=MODE,
                subscriptions=[],
            )  # fmt: skip
            group = clients.group("g")
            assert group is not None
            sender.group_changed(group)
        at_once = len(turns)
        assert at_once == SMALL_GROUP_MAX
        await asyncio.sleep(2 * PAUSE_SECONDS)
        assert sum(turns[at_once:]) == 1_000
        assert max(turns) <= 64
        running.cancel()

    simulate(lambda network: main())


def _list(members: Iterable[ClientInfo]) -> list[ClientInfo]:
    return list(members)
