"""Requests and replies through a whole simulated cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest

from sprocket.base.errors import CallTimeout, SendFailed, UsageError
from sprocket.client.producer import Producer
from sprocket.client.push_consumer import PushConsumer
from sprocket.message.message import Message, StoredMessage
from sprocket.testing.cluster import Cluster
from sprocket.testing.loop import simulate
from sprocket.testing.network import Network
from tests.client.fakes import until


class Pair:
    """An asker and an answerer, each in a process of its own."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.servers = cluster.nameserver_addresses
        self.asking, ours = cluster.client("asker")
        self.answering, theirs = cluster.client("answerer")
        self.producer = Producer("askers", nameservers=self.servers, world=ours)
        self.consumer = PushConsumer(
            "answerers", nameservers=self.servers, world=theirs, start="first"
        )

    async def listen(self, answer: Callable[[StoredMessage], Awaitable[Any]]) -> None:
        async def listener(message: StoredMessage) -> None:
            await answer(message)

        async def start() -> None:
            self.consumer.subscribe("questions", listener=listener)
            await self.consumer.start()

        await self.answering.run(start())

    async def ask(self, message: Message, timeout_ms: float = 90_000) -> Message:
        return await self.asking.run(self.producer.request(message, timeout_ms=timeout_ms))

    async def close(self) -> None:
        await self.asking.run(self.producer.close())
        await self.answering.run(self.consumer.close())


def play(test: Callable[[Pair], Coroutine[Any, Any, None]], brokers: int = 1) -> None:
    async def main(network: Network) -> None:
        cluster = Cluster(network, "replies", brokers=brokers)
        await cluster.start()
        pair = Pair(cluster)
        await pair.asking.run(pair.producer.start())
        await pair.asking.run(pair.producer.send(Message("questions", b"first of all")))
        await test(pair)
        await pair.close()
        await cluster.stop()

    simulate(main)


@pytest.mark.parametrize("brokers", [1, 3])
def test_whoever_asks_gets_the_answer_to_his_own_question(brokers: int) -> None:
    async def test(pair: Pair) -> None:
        async def answer(message: StoredMessage) -> None:
            if "CORRELATION_ID" in message.properties:
                await asyncio.sleep(0.01 * (ord(message.body[-1:]) % 7))
                body = b"re: " + message.body
                await pair.consumer.reply(message, body, properties={"mood": "good"})

        await pair.listen(answer)
        questions = [Message("questions", b"q%d" % number) for number in range(20)]
        replies = await asyncio.gather(*(pair.ask(question) for question in questions))
        assert [reply.body for reply in replies] == [b"re: " + q.body for q in questions]
        assert replies[0].properties == {"mood": "good"}
        assert replies[0].topic.endswith("_REPLY_TOPIC")

    play(test, brokers)


def test_large_replies_are_compressed_on_the_way() -> None:
    async def test(pair: Pair) -> None:
        async def answer(message: StoredMessage) -> None:
            if "CORRELATION_ID" in message.properties:
                await pair.consumer.reply(message, bytes(100_000))

        await pair.listen(answer)
        assert (await pair.ask(Message("questions", b"?"))).body == bytes(100_000)

    play(test)


def test_no_reply_in_time_says_that_the_request_was_sent_and_a_late_one_is_let_go() -> None:
    async def test(pair: Pair) -> None:
        late: list[StoredMessage] = []

        async def keep(message: StoredMessage) -> None:
            if "CORRELATION_ID" in message.properties:
                late.append(message)

        await pair.listen(keep)
        with pytest.raises(CallTimeout, match="was sent, and nobody replied within 2000 ms"):
            await pair.ask(Message("questions", b"?"), timeout_ms=2_000)
        await until(lambda: late)
        await pair.answering.run(pair.consumer.reply(late[0], b"too late"))
        assert late[0].properties["TTL"] == "2000"

    play(test)


def test_an_asker_that_is_gone_is_told_to_the_answerer() -> None:
    async def test(pair: Pair) -> None:
        asked: list[StoredMessage] = []

        async def keep(message: StoredMessage) -> None:
            if "CORRELATION_ID" in message.properties:
                asked.append(message)

        await pair.listen(keep)
        with pytest.raises(CallTimeout):
            await pair.ask(Message("questions", b"?"), timeout_ms=2_000)
        await pair.asking.run(pair.producer.close())
        with pytest.raises(SendFailed, match="not found"):
            await pair.answering.run(pair.consumer.reply(asked[0], b"too late"))

    play(test)


def test_a_connection_that_breaks_while_the_answer_is_made_does_not_lose_it() -> None:
    async def test(pair: Pair) -> None:
        async def answer(message: StoredMessage) -> None:
            if "CORRELATION_ID" in message.properties:
                pair.cluster.network.break_connections("asker")
                await asyncio.sleep(5)
                await pair.consumer.reply(message, b"still")

        await pair.listen(answer)
        assert (await pair.ask(Message("questions", b"?"))).body == b"still"

    play(test)


def test_an_ordinary_message_cannot_be_replied_to() -> None:
    async def test(pair: Pair) -> None:
        seen: list[StoredMessage] = []

        async def keep(message: StoredMessage) -> None:
            seen.append(message)

        await pair.listen(keep)
        await until(lambda: seen)
        with pytest.raises(UsageError, match="asks for no reply"):
            await pair.answering.run(pair.consumer.reply(seen[0], b"yes"))
        with pytest.raises(UsageError, match="asks for no reply"):
            await pair.asking.run(pair.producer.reply(seen[0], b"yes"))

    play(test)
