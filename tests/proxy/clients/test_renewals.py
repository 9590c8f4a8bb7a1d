"""Messages that stay invisible: when they are renewed, and when no more."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from sprocket.base.errors import ConnectFailed
from sprocket.message.pop_handle import PopHandle
from sprocket.protocol.bodies import GroupConfig
from sprocket.proxy.clients.renewals import KeptMessage, Renewals
from sprocket.proxy.config import ProxyConfig
from sprocket.proxy.messages import rocketmq_pb2 as pb
from sprocket.proxy.messages.statuses import CallRefused
from sprocket.testing.clock import LoopClock
from sprocket.testing.loop import simulate


class Broker:
    """Changes invisible times.

    Attributes:
        changes: (seconds, handle, ms) of each change.
        error: makes changes fail.
        seconds: how long a change takes.
    """

    def __init__(self, clock: LoopClock) -> None:
        self.clock = clock
        self.changes: list[tuple[int, str, int]] = []
        self.error: Exception | None = None
        self.seconds = 0.0

    async def change(self, group: str, topic: str, handle: str, milliseconds: int) -> str:
        now = int(asyncio.get_running_loop().time())
        self.changes.append((now, handle, milliseconds))
        await asyncio.sleep(self.seconds)
        if self.error is not None:
            raise self.error
        return handle_of(self.clock.now_ms(), milliseconds)

    async def group(self, name: str, topic: str) -> GroupConfig | None:
        return None


def handle_of(pop_ms: int, invisible_ms: int) -> str:
    return f"{PopHandle(0, pop_ms, invisible_ms, 0, '0', 'b', 0, 0).encode()} 1"


def kept(handle: str, client_id: str = "c") -> KeptMessage:
    now = asyncio.get_running_loop().time()
    return KeptMessage(client_id, "g", "t", handle, now=now, failures_before=0)


def play(
    test: Callable[[Renewals, Broker, str], Awaitable[None]], config: ProxyConfig | None = None
) -> None:
    """Plays a test with one message in hand, whose handle is the last argument."""

    async def main() -> None:
        clock = LoopClock()
        broker = Broker(clock)
        renewals = Renewals(config or ProxyConfig(), change=broker.change, group_of=broker.group)
        task = asyncio.ensure_future(renewals.run())
        handle = handle_of(clock.now_ms(), 60_000)
        renewals.keep(kept(handle))
        await test(renewals, broker, handle)
        task.cancel()
        await renewals.close(1)

    simulate(lambda network: main())


def test_times_grow() -> None:
    async def test(renewals: Renewals, broker: Broker, handle: str) -> None:
        await asyncio.sleep(2900)
        assert [ms for _, _, ms in broker.changes] == [60_000, 180_000, 300_000, 600_000, 1_800_000]
        assert [at for at, _, _ in broker.changes] == [50, 100, 270, 560, 1150]
        newest = await renewals.take("c", handle)
        assert newest != handle
        assert len(renewals) == 0

    play(test)


def test_an_acknowledgement_waits_for_a_renewal_in_progress() -> None:
    async def test(renewals: Renewals, broker: Broker, handle: str) -> None:
        broker.seconds = 5
        await asyncio.sleep(51)
        assert len(broker.changes) == 1
        assert await renewals.take("c", handle) != handle
        assert not renewals.has("c", handle)

    play(test)


def test_a_message_that_is_done_is_not_renewed() -> None:
    async def test(renewals: Renewals, broker: Broker, handle: str) -> None:
        assert await renewals.take("c", handle) == handle
        assert await renewals.take("c", handle) == handle
        await asyncio.sleep(100)
        assert broker.changes == []

    play(test)


def test_a_broker_that_is_away_is_asked_some_times() -> None:
    async def test(renewals: Renewals, broker: Broker, handle: str) -> None:
        broker.error = ConnectFailed("away")
        await asyncio.sleep(200)
        assert [at for at, _, _ in broker.changes] == [50, 55, 60]
        assert len(renewals) == 0

    play(test)


def test_a_handle_that_does_not_count_any_more_is_left() -> None:
    async def test(renewals: Renewals, broker: Broker, handle: str) -> None:
        broker.error = CallRefused(pb.INVALID_RECEIPT_HANDLE, "gone")
        await asyncio.sleep(200)
        assert len(broker.changes) == 1
        assert len(renewals) == 0

    play(test)


def test_it_ends_after_the_longest_time() -> None:
    async def test(renewals: Renewals, broker: Broker, handle: str) -> None:
        await asyncio.sleep(400)
        assert [ms for _, _, ms in broker.changes] == [60_000, 10_000]
        assert len(renewals) == 0

    play(test, ProxyConfig(renew_ms_max=90_000))


def test_messages_of_a_client_that_is_gone_become_visible() -> None:
    async def test(renewals: Renewals, broker: Broker, handle: str) -> None:
        renewals.give_back("other")
        renewals.give_back("c")
        await asyncio.sleep(1)
        assert broker.changes == [(0, handle, 1_000)]
        await asyncio.sleep(100)
        assert len(broker.changes) == 1

    play(test)


def test_they_are_bounded_and_one_client_has_its_share() -> None:
    async def test(renewals: Renewals, broker: Broker, handle: str) -> None:
        assert not renewals.is_full("c")
        renewals.keep(kept(handle_of(1, 60_000)))
        assert (renewals.is_full("c"), renewals.is_full("other")) == (True, False)
        for at in range(2, 20):
            renewals.keep(kept(handle_of(at, 60_000), f"c{at}"))
        assert renewals.is_full("nobody")

    play(test, ProxyConfig(renewals_max=20))


def test_plans_for_messages_that_are_done_do_not_pile_up() -> None:
    async def test(renewals: Renewals, broker: Broker, handle: str) -> None:
        for at in range(20_000):
            received = handle_of(at + 1, 60_000)
            renewals.keep(kept(received))
            assert renewals.taken("c", received) == received
        assert renewals.planned < 2_000
        await asyncio.sleep(51)
        assert [changed for _, changed, _ in broker.changes] == [handle]

    play(test)


def test_a_clock_that_is_set_changes_no_renewal() -> None:
    async def test(renewals: Renewals, broker: Broker, handle: str) -> None:
        for ahead_ms in (-3_600_000, 3_600_000):
            renewals.keep(kept(handle_of(broker.clock.now_ms() + ahead_ms, 60_000)))
        await asyncio.sleep(40)
        assert broker.changes == []
        await asyncio.sleep(15)
        assert len(broker.changes) == 3

    play(test)


def test_a_broker_that_is_silent_holds_up_no_other() -> None:
    async def test(renewals: Renewals, broker: Broker, handle: str) -> None:
        async def change(group: str, topic: str, changed: str, milliseconds: int) -> str:
            if " silent " in changed:
                await asyncio.sleep(3)
                raise ConnectFailed("silent")
            return await broker.change(group, topic, changed, milliseconds)

        both = Renewals(ProxyConfig(), change=change, group_of=broker.group)
        now_ms = broker.clock.now_ms()
        for at in range(1000):
            made = PopHandle(0, now_ms, 60_000, 0, "0", "silent", 0, at).encode()
            both.keep(kept(f"{made} 1"))
        both.keep(kept(handle, "other"))
        task = asyncio.ensure_future(both.run())
        await asyncio.sleep(52)
        assert [changed for _, changed, _ in broker.changes].count(handle) == 2
        task.cancel()
        await both.close(1)

    play(test)


def test_many_times_that_end_together_are_begun_in_several_turns() -> None:
    async def test(renewals: Renewals, broker: Broker, handle: str) -> None:
        for at in range(5_000):
            renewals.keep(kept(handle_of(at + 1, 60_000), f"c{at}"))
        await asyncio.sleep(51.5)
        assert len(broker.changes) == 5_001
        assert len(renewals) == 5_001

    play(test)
