"""Messages on their way back to a real broker, as large as they may be."""

from __future__ import annotations

import asyncio
import os

import pytest

import sprocket
from sprocket import Later, Message, StoredMessage
from sprocket.client.config import ConsumerConfig
from tests.support import run

pytestmark = pytest.mark.process

LARGEST = 4 * 1024 * 1024


@pytest.mark.parametrize("way", ["by its place", "as a new message"])
def test_the_largest_message_comes_again_whole_with_its_id_and_properties(way: str) -> None:
    body = os.urandom(LARGEST)

    async def main() -> None:
        got: asyncio.Queue[StoredMessage] = asyncio.Queue()
        async with (
            sprocket.Standalone() as node,
            sprocket.Producer("senders", nameservers=node.nameserver_address) as producer,
            sprocket.PushConsumer(
                "readers",
                nameservers=node.nameserver_address,
                start="first",
                config=ConsumerConfig(reconsume_max=1),
            ) as consumer,
        ):

            @consumer.on("orders", tags="big")
            async def take(message: StoredMessage) -> Later | None:
                got.put_nowait(message)
                if way == "as a new message" and not message.reconsume_times:
                    message.log_offset = type(message.log_offset)(1 << 50)  # nothing is there
                return Later(1)

            message = Message("orders", body, tag="big", keys=["o-1"], properties={"n": "1"})
            sent = await producer.send(message)
            first, again = await got.get(), await got.get()
            for each in (first, again):
                assert each.body == body
                assert each.topic == "orders"
                assert (each.tag, each.keys) == ("big", ["o-1"])
                assert each.properties["n"] == "1"
                assert each.properties["UNIQ_KEY"] == sent.message_id
            assert again.reconsume_times == 1
            async with sprocket.PullConsumer(
                "undertaker", nameservers=node.nameserver_address
            ) as reader:
                while True:
                    try:
                        (queue,) = await reader.queues("%DLQ%readers")
                        break
                    except sprocket.RouteNotFound:
                        await asyncio.sleep(0.05)
                dead = await reader.pull_blocking(queue, 0)
                assert [each.body for each in dead.messages] == [body]

    run(main())
