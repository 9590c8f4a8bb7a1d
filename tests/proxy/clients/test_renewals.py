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


def play(
    test: Callable[[Renewals, Broker, str], Awaitable[None]], config: ProxyConfig | None = None
) -> None:
    """Plays a test with one message in hand, whose handle is the last argument."""

    async def main() -> None:
        clock = LoopClock()
        broker = Broker(clock)
        renewals = Renewals(
            config or ProxyConfig(), clock, change=broker.change, group_of=broker.group
        )
        task = asyncio.ensure_future(renewals.run())
        now_ms = clock.now_ms()
        handle = handle_of(now_ms, 60_000)
        renewals.keep(KeptMessage("c", "g", "t", handle, since_ms=now_ms, failures_before=0))
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


def test_they_are_bounded() -> None:
    async def test(renewals: Renewals, broker: Broker, handle: str) -> None:
        assert renewals.is_full

    play(test, ProxyConfig(renewals_max=1))
