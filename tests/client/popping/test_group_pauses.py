"""Messages that failed come again by the policy of their group."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import pytest

from sprocket.base.deadline import Deadline
from sprocket.client.popping import group_pauses
from sprocket.protocol.bodies import GroupConfig
from sprocket.protocol.requests.group import CreateGroup
from sprocket.remoting.pool import Pool
from tests.client.fakes import until
from tests.client.pop_cluster import GROUP, PopCluster, play


async def set_policy(pops: PopCluster, **policy: Any) -> None:
    body = GroupConfig(group_name=GROUP, group_retry_policy=policy).encode()
    async with Pool() as pool:
        address = pops.cluster.brokers[0].server.address
        await pool.ask(address, CreateGroup(), body=body, deadline=Deadline.after(5))


def growing(initial_ms: int, factor: int) -> dict[str, Any]:
    given = {"initial": initial_ms, "max": 7_200_000, "multiplier": factor}
    return {"type": "EXPONENTIAL", "exponentialRetryPolicy": given}


class Failing:
    """A listener that always fails; when it was called, in seconds."""

    def __init__(self) -> None:
        self.at: list[float] = []

    async def __call__(self, message: Any) -> None:
        self.at.append(asyncio.get_running_loop().time())
        raise ValueError("always")

    @property
    def pauses(self) -> list[int]:
        return [round(after - before) for before, after in itertools.pairwise(self.at)]


def test_pauses_are_those_of_the_group_and_follow_its_changes() -> None:
    async def main(pops: PopCluster) -> None:
        await set_policy(pops, **growing(8_000, 3))
        listener = Failing()
        await pops.push(listener, invisible_ms=60_000)
        await pops.send(b"bad")
        await until(lambda: len(listener.at) == 3, seconds=60)
        first, second = listener.pauses
        assert abs(first - 8) <= 1
        assert abs(second - 24) <= 1
        listed = {"type": "CUSTOMIZED", "customizedRetryPolicy": {"next": [1, 1, 15_000]}}
        await set_policy(pops, **listed)
        await until(lambda: len(listener.at) == 6, seconds=200)
        assert all(abs(pause - 15) <= 1 for pause in listener.pauses[-2:])

    play(main)


def test_a_broker_that_does_not_tell_the_policy_has_the_usual_pauses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def main(pops: PopCluster) -> None:
        await set_policy(pops, **growing(1_000, 2))
        monkeypatch.setattr(group_pauses.GroupConfigOf, "code", 30_999)
        listener = Failing()
        await pops.push(listener, invisible_ms=60_000)
        await pops.send(b"bad")
        await until(lambda: len(listener.at) == 3, seconds=60)
        assert [round(pause / 10) * 10 for pause in listener.pauses] == [10, 30]

    play(main)
