"""Brokers that answer nonsense: nothing is lost, passed over, or asked for without end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from sprocket.client.push_consumer import PushConsumer
from sprocket.protocol.command import Command, Reply
from sprocket.protocol.requests.pull import PullMessage, PullReply
from tests.client.fakes import FakeBroker, play, until, world

Nonsense = Callable[[FakeBroker, int], Reply]


def _reply(code: int, next_offset: int, body: bytes = b"") -> Reply:
    return Reply(
        PullReply(
            suggest_which_broker_id=0, next_begin_offset=next_offset, min_offset=0, max_offset=9
        ),
        body,
        code,
    )


NONSENSE: dict[str, Nonsense] = {
    "nothing new, at once": lambda broker, asked: _reply(19, asked),
    "none matched, and on from here": lambda broker, asked: _reply(20, asked),
    "found, and brings nothing": lambda broker, asked: _reply(0, asked + 5),
    "found, and brings no record": lambda broker, asked: _reply(0, asked + 5, b"\0" * 50),
    "go on below 0": lambda broker, asked: _reply(19, -7),
    "elsewhere, which is below 0": lambda broker, asked: _reply(21, -7),
    "elsewhere, which is here": lambda broker, asked: _reply(21, asked),
    "found, and ends in the middle": lambda broker, asked: _reply(
        0, asked + 2, b"".join(broker.queue("orders").records[asked : asked + 2])[:-3]
    ),
}


@pytest.mark.parametrize("what", NONSENSE)
def test_a_consumer_waits_a_while_and_passes_nothing_over(what: str) -> None:
    async def main() -> None:
        async with FakeBroker({"orders": 1}) as broker:
            for number in range(5):
                broker.put("orders", body=f"m{number}")
            sensible: Any = broker._pull

            async def nonsense(command: Command, peer: Any) -> Reply:
                header = command.read(PullMessage)
                if header.topic != "orders":
                    return await sensible(command, peer)  # type: ignore[no-any-return]
                return NONSENSE[what](broker, header.queue_offset)

            broker._pull = nonsense  # type: ignore[method-assign]
            seen: list[bytes] = []
            names = broker.address
            async with PushConsumer("g", nameservers=names, start="first", world=world()) as one:

                @one.on("orders")
                async def take(message: Any) -> None:
                    seen.append(message.body)

                await asyncio.sleep(120)
                assert 10 < broker.count(PullMessage) < 300
                broker._pull = sensible  # type: ignore[method-assign]
                await until(lambda: len(set(seen)) == 5)
                assert sorted(set(seen)) == [b"m0", b"m1", b"m2", b"m3", b"m4"]

    play(main)
