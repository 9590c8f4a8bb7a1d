"""Numbers, futures and giving up, without a connection."""

from __future__ import annotations

import asyncio

import pytest

from sprocket.base.errors import CallTimeout, ConnectionLost
from sprocket.protocol.command import Command
from sprocket.remoting.calls import Calls
from sprocket.testing.loop import simulate
from sprocket.testing.network import Network


def test_each_reply_finds_its_own_call() -> None:
    async def main(network: Network) -> None:
        loop = asyncio.get_running_loop()
        calls = Calls(loop)
        numbers = [calls.next_number() for _ in range(3)]
        futures = [calls.add(number, loop.time() + 5) for number in numbers]
        for number in reversed(numbers):
            assert calls.settle(Command(0, number))
        assert [(await future).opaque for future in futures] == numbers
        assert len(calls) == 0
        assert not calls.settle(Command(0, numbers[0]))

    simulate(main)


def test_each_gives_up_at_its_own_time() -> None:
    async def main(network: Network) -> None:
        loop = asyncio.get_running_loop()
        calls = Calls(loop)
        waits = {1: 0.15, 2: 0.05, 3: 0.1, 4: 0.101}
        futures = {n: calls.add(n, loop.time() + wait) for n, wait in waits.items()}
        for number in (2, 3, 4, 1):
            with pytest.raises(CallTimeout):
                await futures[number]
            assert -1e-6 <= loop.time() - waits[number] <= 0.011
        assert len(calls) == 0

    simulate(main)


def test_failing_ends_all() -> None:
    async def main(network: Network) -> None:
        calls = Calls(asyncio.get_running_loop())
        futures = [calls.add(number, float("inf")) for number in range(3)]
        futures[0].cancel()
        calls.fail(ConnectionLost("gone"))
        for future in futures[1:]:
            with pytest.raises(ConnectionLost):
                await future

    simulate(main)
