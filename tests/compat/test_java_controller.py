"""RocketMQ's own controller decides, and electors of ours are members of its groups."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from sprocket.election.controller_elector import (
    ControllerElector,
    ControllerTimes,
    GroupOfBrokers,
)
from sprocket.election.elector import ElectionRefused, ElectorUnavailable, LogPosition
from sprocket.election.identity import IdentityFile
from sprocket.remoting.pool import Pool
from sprocket.runtime.clock import SystemClock
from sprocket.runtime.disk import SystemDisk
from tests.compat.javaland import JavaController, mqadmin, require_java, until
from tests.support import run

pytestmark = pytest.mark.java

CLUSTER, NAME = "mixed", "broker-a"
#: More often than a broker does, so that the tests are short.
QUICK = ControllerTimes(heartbeat=0.2, silence=3.0)


@pytest.fixture(scope="module")
def controller(tmp_path_factory: pytest.TempPathFactory) -> JavaController:
    require_java()
    return JavaController(
        tmp_path_factory.mktemp("controlled"),
        settings={
            "scanNotActiveBrokerInterval": 500,
            "scanInactiveMasterInterval": 500,
        },
    )


@asynccontextmanager
async def member(
    controller: JavaController, root: Path, port: int, name: str = NAME
) -> AsyncIterator[ControllerElector]:
    """An elector that has joined and runs."""
    await asyncio.to_thread(root.mkdir, parents=True, exist_ok=True)
    async with Pool() as pool:
        elector = ControllerElector(
            [controller.address],
            GroupOfBrokers(CLUSTER, name),
            IdentityFile(SystemDisk(), str(root), CLUSTER, name),
            pool=pool,
            clock=SystemClock(),
            times=QUICK,
        )
        await elector.join(f"127.0.0.1:{port}", f"127.0.0.1:{port + 7}")
        running = asyncio.create_task(elector.run())
        try:
            yield elector
        finally:
            running.cancel()
            await elector.leave()


def test_electors_register_are_elected_change_the_set_and_hand_over(
    controller: JavaController, tmp_path: Path
) -> None:
    async def main() -> None:
        async with member(controller, tmp_path / "1", 21001) as one:
            assert one.view.master is None
            assert one.view.epoch == 0
            first = await one.claim(one.view)
            assert (first.master, first.epoch, first.in_sync) == (1, 1, {1})
            assert one.writes_until > asyncio.get_running_loop().time()
            async with member(controller, tmp_path / "2", 21101) as two:
                await until(lambda: 2 in one.view.members)
                assert two.view.members[1].address == "127.0.0.1:21001"
                assert two.view.members[1].replication_address == "127.0.0.1:21002"
                assert one.view.members[1].replication_address == "127.0.0.1:21008"
                assert (await two.claim(two.view)).master == 1  # the old one lives
                with pytest.raises(ElectionRefused, match="not in sync"):
                    await one.hand_over(2, one.view)
                seen = one.view
                both = await one.set_in_sync(frozenset({1, 2}), seen)
                assert both.in_sync == {1, 2}
                with pytest.raises(ElectionRefused, match="has changed"):
                    await one.set_in_sync(frozenset({1}), seen)
                await until(lambda: two.view.in_sync == {1, 2})
                with pytest.raises(ElectionRefused, match="CONTROLLER_INVALID_MASTER"):
                    await two.set_in_sync(frozenset({2}), two.view)
                after = await one.hand_over(2, one.view)
                assert (after.master, after.epoch, after.in_sync) == (2, 2, {2})
                await until(lambda: two.view.master == 2)
                shown = await asyncio.to_thread(
                    mqadmin, "getSyncStateSet", "-a", controller.address, "-b", NAME
                )
                assert "#MasterBrokerId\t2" in shown
                assert "#MasterEpoch\t2" in shown

    with controller:
        run(main())


def test_the_one_that_is_ahead_leads_when_the_master_leaves(
    controller: JavaController, tmp_path: Path
) -> None:
    async def main() -> None:
        async with (
            member(controller, tmp_path / "1", 21101, "leaving") as behind,
            member(controller, tmp_path / "2", 21201, "leaving") as ahead,
        ):
            async with member(controller, tmp_path / "3", 21001, "leaving") as master:
                await master.claim(master.view)
                behind.report(LogPosition(epoch=1, end=100))
                ahead.report(LogPosition(epoch=1, end=200))
                await until(lambda: master.view.members.keys() == {1, 2, 3})
                await master.set_in_sync(frozenset({1, 2, 3}), master.view)
                await asyncio.sleep(3 * QUICK.heartbeat)
            await until(lambda: behind.view.master == 2)
            assert (behind.view.epoch, behind.view.in_sync) == (2, {2})
            await until(lambda: not behind.view.members[3].is_alive)

    with controller:
        run(main())


def test_members_and_epochs_outlive_the_controller_and_their_processes(
    controller: JavaController, tmp_path: Path
) -> None:
    async def first() -> None:
        async with (
            member(controller, tmp_path / "1", 21001, "lasting") as one,
            member(controller, tmp_path / "2", 21101, "lasting") as two,
        ):
            await one.claim(one.view)
            await until(lambda: one.view.members.keys() == {1, 2})
            await one.set_in_sync(frozenset({1, 2}), one.view)
            before = one.writes_until
            controller.kill()
            with pytest.raises(ElectorUnavailable):
                await one.set_in_sync(frozenset({1}), one.view)
            assert one.view.master == 1
            await asyncio.to_thread(controller.start)
            await until(lambda: one.writes_until > before + QUICK.silence)
            await until(lambda: one.view.members[2].is_alive and one.view.members[1].is_alive)
            assert one.view.in_sync == two.view.in_sync == {1, 2}
            assert (await one.set_in_sync(frozenset({1}), one.view)).in_sync == {1}

    async def second() -> None:
        async with member(controller, tmp_path / "2", 29101, "lasting") as two:
            assert (tmp_path / "2" / "brokerIdentity").read_text() == "mixed#lasting#2"
            assert two.view.members[2].address == "127.0.0.1:29101"
            assert two.view.epoch >= 1
            with pytest.raises(ElectionRefused, match="CONTROLLER_ELECT_MASTER_FAILED"):
                await two.claim(two.view)

    with controller:
        run(first())
        run(second())
