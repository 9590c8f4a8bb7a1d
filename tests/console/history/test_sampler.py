"""One sampler asks the brokers; what fails is a gap, and is said."""

from __future__ import annotations

from sprocket.admin import groups
from sprocket.admin.caller import Caller
from sprocket.console.history.sampler import HistorySampler
from sprocket.remoting.pool import Pool
from sprocket.testing.clock import LoopClock
from sprocket.testing.cluster import Cluster
from sprocket.testing.loop import simulate
from sprocket.testing.network import Network


def sampled(test) -> None:  # type: ignore[no-untyped-def]
    async def main(network: Network) -> None:
        cluster = Cluster(network, 0, brokers=2)
        await cluster.start()
        clock = LoopClock()
        async with Pool() as pool:
            caller = Caller(pool, cluster.nameserver_addresses, timeout_ms=1_000)
            await test(HistorySampler(caller, now_ms=clock.now_ms), caller, clock)

    simulate(main)


def test_it_samples_brokers_and_the_groups_that_are_watched() -> None:
    async def story(sampler: HistorySampler, caller: Caller, clock: LoopClock) -> None:
        await groups.create(caller, "billing")
        await sampler.watch("billing")
        await sampler.sample()
        now_ms = clock.now_ms()
        assert sampler.failure is None
        assert len(sampler.processes) == 2
        assert len(sampler.history.of_figure("put", 0, now_ms + 1)) == 2

    sampled(story)


def test_no_name_server_is_a_failure_that_is_told() -> None:
    async def main(network: Network) -> None:
        async with Pool() as pool:
            caller = Caller(pool, ["127.0.0.1:1"], timeout_ms=500)
            sampler = HistorySampler(caller, now_ms=LoopClock().now_ms)
            await sampler.sample()
            assert sampler.failure is not None
            assert sampler.processes == ()

    simulate(main)


def test_only_so_many_groups_are_watched() -> None:
    async def story(sampler: HistorySampler, caller: Caller, clock: LoopClock) -> None:
        for number in range(80):
            sampler.keep_watching(f"g{number}")
        asked: list[str] = []

        async def lag(_: Caller, group: str) -> None:
            asked.append(group)
            raise groups.GroupNotFound(17, "none")

        from sprocket.admin import positions

        real, positions.lag = positions.lag, lag  # type: ignore[assignment]
        try:
            await sampler.sample()
        finally:
            positions.lag = real
        assert asked == [f"g{number}" for number in range(30, 80)]

    sampled(story)
