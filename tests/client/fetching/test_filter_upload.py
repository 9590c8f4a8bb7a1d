"""Consumers with a filter in Python, at a broker on a real loop."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

import sprocket
from sprocket.base.errors import FilterFailed, FilterMissing, NoPermission, SubscriptionInvalid
from sprocket.broker.config import BrokerConfig
from sprocket.client import blocking
from sprocket.client.lite_pull_consumer import LitePullConsumer
from sprocket.client.pull_consumer import PullConsumer
from sprocket.filter.python import PythonFilter
from sprocket.message.message import Message, StoredMessage
from sprocket.message.queue import QueueId
from tests.support import run

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(
        sys.platform != "linux" or os.uname().machine not in ("x86_64", "aarch64"),
        reason="seccomp is Linux's, on x86_64 and arm64",
    ),
]
EVEN = "def wanted(message): return int(message.body) % 2 == 0"


def even(message: Any) -> bool:
    return int(message.body) % 2 == 0


async def stored(node: sprocket.Standalone, count: int) -> QueueId:
    async with sprocket.Producer("p", nameservers=node.nameserver_address) as producer:
        (queue, *_) = await producer.queues("numbers")
        for number in range(count):
            await producer.send(Message("numbers", b"%d" % number), queue=queue)
    return queue


def play(test: Callable[[sprocket.Standalone], Awaitable[None]], **settings: object) -> None:
    async def main() -> None:
        config = BrokerConfig(port=0, **{"filter_workers": 2, **settings})  # type: ignore[arg-type]
        async with sprocket.Standalone(configs=[config]) as node:
            await test(node)

    run(main())


def test_a_push_consumer_gets_what_its_function_wants() -> None:
    async def test(node: sprocket.Standalone) -> None:
        await stored(node, 6)
        consumer = sprocket.PushConsumer(
            "evens", nameservers=node.nameserver_address, start="first"
        )
        got: list[bytes] = []
        done = asyncio.Event()

        @consumer.on("numbers", code=even)
        async def take(message: StoredMessage) -> None:
            got.append(message.body)
            if len(got) == 3:
                done.set()

        async with consumer:
            await asyncio.wait_for(done.wait(), 20)
        assert sorted(got) == [b"0", b"2", b"4"]

    play(test)


def test_pull_consumers_and_polling_ones_choose_by_it_too() -> None:
    async def test(node: sprocket.Standalone) -> None:
        names = node.nameserver_address
        queue = await stored(node, 4)
        async with PullConsumer("reader", nameservers=names) as reader:
            pulled = await reader.pull(queue, 0, code=PythonFilter(EVEN, "wanted"))
            assert [message.body for message in pulled.messages] == [b"0", b"2"]
            assert pulled.next_offset == 4
            # By its name, since it is there now.
            pulled = await reader.pull(queue, 1, code=PythonFilter(None, "wanted"))
            assert [message.body for message in pulled.messages] == [b"2"]
            with pytest.raises(FilterMissing):
                await reader.pull(queue, 1, code=PythonFilter(None, "other"))
        async with LitePullConsumer("poller", nameservers=names) as poller:
            poller.assign([queue], code=even)
            await poller.seek_to_begin(queue)
            got: list[bytes] = []
            async with asyncio.timeout(20):
                while len(got) < 2:
                    got += [message.body for message in await poller.poll(1000)]
            assert got == [b"0", b"2"]

    play(test)


def test_programs_without_a_loop_use_it_alike() -> None:
    async def test(node: sprocket.Standalone) -> None:
        queue = await stored(node, 3)

        def pulled() -> list[bytes]:
            with blocking.PullConsumer("b", nameservers=node.nameserver_address) as consumer:
                found = consumer.pull(queue, 0, code=even)
                return [message.body for message in found.messages]

        assert await asyncio.to_thread(pulled) == [b"0", b"2"]

    play(test)


@pytest.mark.parametrize(
    ("source", "kind", "words"),
    [
        ("def wanted(message:", SubscriptionInvalid, "line 1, column 11"),
        ("def wanted(message): return message.nothing", FilterFailed, "line 1, column 29"),
    ],
)
def test_what_is_wrong_with_it_is_told_with_line_and_column(
    source: str, kind: type[Exception], words: str
) -> None:
    async def test(node: sprocket.Standalone) -> None:
        queue = await stored(node, 1)
        async with PullConsumer("g", nameservers=node.nameserver_address) as consumer:
            with pytest.raises(kind, match=words):
                await consumer.pull(queue, 0, code=PythonFilter(source, "wanted"))

    play(test)


def test_a_push_consumer_says_once_why_nothing_comes(caplog: pytest.LogCaptureFixture) -> None:
    async def test(node: sprocket.Standalone) -> None:
        await stored(node, 1)
        consumer = sprocket.PushConsumer("bad", nameservers=node.nameserver_address)
        consumer.subscribe("numbers", code=PythonFilter("def wanted(m: ...", "wanted"))
        with caplog.at_level(logging.WARNING, "sprocket.client.fetching.fetcher"):
            async with consumer, asyncio.timeout(20):
                await asyncio.sleep(1.5)
        assert warnings()
        assert len(warnings()) == len(set(warnings()))

    def warnings() -> list[str]:
        return [
            record.message
            for record in caplog.records
            if "filter wanted: line 1, column 11" in record.message
        ]

    play(test)


def test_whoever_may_not_upload_hears_it_and_a_secret_opens_the_door() -> None:
    async def test(node: sprocket.Standalone) -> None:
        queue = await stored(node, 3)
        async with PullConsumer("g", nameservers=node.nameserver_address) as consumer:
            with pytest.raises(NoPermission, match="filter_uploaders"):
                await consumer.pull(queue, 0, code=even)
            signed = PythonFilter(even, secret="s3cret")
            pulled = await consumer.pull(queue, 0, code=signed)
            assert [message.body for message in pulled.messages] == [b"0", b"2"]

    play(test, filter_uploaders=(), filter_secret="s3cret")
