"""A broker in a thread of its own, for blocking tests and for async ones."""

from __future__ import annotations

import asyncio
import socket
import threading

import pytest

from sprocket.base.errors import UsageError
from sprocket.broker.config import BrokerConfig
from sprocket.client import blocking
from sprocket.client.producer import Producer
from sprocket.message.message import Message
from sprocket.testing.node_thread import NodeThread

pytestmark = pytest.mark.process


def test_blocking_and_async_code_use_it_alike_and_it_leaves_no_thread() -> None:
    with NodeThread() as node:
        topic = node.topic("orders")
        with blocking.Producer("p", nameservers=node.nameservers) as producer:
            producer.send(Message(topic, b"blocking"))
        node.send(topic, "by itself")

        async def story() -> list[bytes]:
            async with Producer("p", nameservers=node.nameservers) as producer:
                reading = asyncio.create_task(node.aio.messages(topic, 4))
                await producer.send(Message(topic, b"async"))
            await node.aio.send(topic, b"awaited", tag="last")
            assert await node.aio.topic("orders") != topic
            return [message.body for message in await reading]

        sent = asyncio.run(story())
        assert sent == [b"blocking", b"by itself", b"async", b"awaited"]
        assert [message.body for message in node.messages(topic)] == sent
        with pytest.raises(AssertionError, match=r"4 of 5 messages after 0\.1 s"):
            node.messages(topic, 5, wait_s=0.1)
        assert node.group() != node.group()
    with pytest.raises(UsageError, match="does not run"):
        node.topic()
    assert "sprocket-test-node" not in [thread.name for thread in threading.enumerate()]


def test_settings_are_obeyed_and_a_failed_start_is_raised() -> None:
    with NodeThread([BrokerConfig(name="b-7", port=0)]) as node:
        assert node.send(node.topic(), b"x").queue.broker == "b-7"
        with pytest.raises(UsageError, match="starts once"):
            node.__enter__()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(UsageError), NodeThread([BrokerConfig(port=port)]):
            pass
