from __future__ import annotations

import asyncio
import itertools
from typing import Any

from sprocket.client.base.subscription import Later
from tests.client.fakes import until
from tests.client.pop_cluster import GROUP, PopCluster, play


def dead(pops: PopCluster) -> int:
    store = pops.cluster.brokers[0].server._store
    return int(store.max_offset(f"%DLQ%{GROUP}", 0))


def test_a_failed_message_comes_again_after_a_growing_time_and_is_dead_at_last() -> None:
    async def main(pops: PopCluster) -> None:
        at: list[float] = []
        loop = asyncio.get_running_loop()

        async def fail(message: Any) -> None:
            at.append(loop.time())
            assert message.reconsume_times == len(at) - 1
            raise ValueError("always")

        await pops.push(fail, reconsume_max=3, invisible_ms=5_000)
        await pops.send(b"bad")
        await until(lambda: len(at) == 4, seconds=150)
        pauses = [after - before for before, after in itertools.pairwise(at)]
        assert [round(each / 10) * 10 for each in pauses] == [10, 30, 60]
        await until(lambda: dead(pops) == 1)
        await asyncio.sleep(150)
        assert (len(at), dead(pops)) == (4, 1)

    play(main)


def test_a_listener_may_choose_the_delay_or_death() -> None:
    async def main(pops: PopCluster) -> None:
        got: list[tuple[bytes, int]] = []

        async def choose(message: Any) -> Any:
            got.append((message.body, message.reconsume_times))
            if message.body == b"dead":
                return Later(-1)
            return Later(2) if message.reconsume_times == 0 else None

        await pops.push(choose)
        await pops.send(b"dead", b"soon")
        await until(lambda: len(got) == 3, seconds=8.0)
        assert sorted(got) == [(b"dead", 0), (b"soon", 0), (b"soon", 1)]
        await until(lambda: dead(pops) == 1)

    play(main)


def test_each_message_of_a_batch_has_its_own_end() -> None:
    async def main(pops: PopCluster) -> None:
        got: list[tuple[bytes, int]] = []

        async def choose(messages: list[Any]) -> Any:
            got.extend((message.body, message.reconsume_times) for message in messages)
            return [
                Later(2) if message.body == b"1" and not message.reconsume_times else None
                for message in messages
            ]

        await pops.send(*(b"%d" % n for n in range(3)))
        await pops.push(choose, batch=16)
        await until(lambda: len(got) == 4, seconds=10.0)
        assert sorted(got) == [(b"0", 0), (b"1", 0), (b"1", 1), (b"2", 0)]

    play(main)


def test_a_listener_over_its_time_limit_loses_its_message_after_all() -> None:
    async def main(pops: PopCluster) -> None:
        got: list[int] = []

        async def slow(message: Any) -> None:
            got.append(message.reconsume_times)
            if message.reconsume_times == 0:
                await asyncio.sleep(60)

        consumer = await pops.push(slow, consume_timeout_ms=12_000, invisible_ms=4_000)
        await pops.send(b"x")
        await until(lambda: got == [0, 1], seconds=40)
        await asyncio.sleep(60)
        assert got == [0, 1]
        assert consumer.statistics().topics["tasks"].expired == 1

    play(main)


def test_messages_that_were_sent_back_by_pulling_are_consumed_too() -> None:
    async def main(pops: PopCluster) -> None:
        got: list[tuple[str, int]] = []

        def listening(name: str) -> Any:
            async def listen(message: Any) -> Any:
                got.append((name, message.reconsume_times))
                return Later(3) if name == "pulls" else None

            return listen

        pulling = await pops.push(listening("pulls"), name="pulls", mode="pull")
        await pops.send(b"x")
        await until(lambda: got)
        await asyncio.sleep(1.0)
        await pops.close(pulling)
        await pops.push(listening("pops"), name="pops")
        await until(lambda: len(got) == 2, seconds=60)
        assert got == [("pulls", 0), ("pops", 1)]

    play(main)
