"""RocketMQ's own Go client at our servers, alone and in one group with ours."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from sprocket import (
    Message,
    Producer,
    PushConsumer,
    StoredMessage,
)
from tests.compat import foreign
from tests.compat.foreign import Foreign, cli, make_topic, send, stored
from tests.compat.javaland import wait_until
from tests.compat.sprocketland import SprocketNode
from tests.support import run

pytestmark = pytest.mark.process

QUEUES = 4


@pytest.fixture(scope="module")
def go() -> Foreign:
    return foreign.go()


@pytest.fixture(scope="module")
def node(go: Foreign, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SprocketNode]:
    """A node where nothing takes long."""
    settings = {
        "store.delay_levels": "1s " * 18,
        "broker.transaction_check_ms": 1_000,
        "broker.transaction_timeout_ms": 1_000,
    }
    with SprocketNode(tmp_path_factory.mktemp("go"), settings=settings) as running:
        yield running


@pytest.fixture
def topic(request: pytest.FixtureRequest, node: SprocketNode) -> str:
    return make_topic(node, request.node.name, queues=QUEUES)


@pytest.mark.parametrize("how", ["sync", "async", "oneway", "batch"])
def test_what_a_go_producer_sends_is_stored_whole(
    go: Foreign, node: SprocketNode, topic: str, how: str
) -> None:
    sent = [
        {"body": "first", "tag": "paid", "keys": ["k1", "k2"], "properties": {"town": "Köln"}},
        {"body": "second"},
    ]
    told = go.run("produce", names=node.names, group="p", topic=topic, how=how, messages=sent)
    wait_until(lambda: len(stored(node, topic)) == 2)
    first, second = sorted(stored(node, topic), key=lambda message: message.body)
    assert (first.body, first.tag, first.keys) == (b"first", "paid", ["k1", "k2"])
    assert first.properties["town"] == "Köln"
    assert (second.body, second.tag, second.keys) == (b"second", None, [])
    assert [line["status"] for line in told] == [0] * {"oneway": 0, "batch": 1}.get(how, 2)
    if how in ("sync", "async"):
        assert {line["id"] for line in told} == {first.message_id, second.message_id}


def test_long_bodies_delays_and_shards_of_a_go_producer(
    go: Foreign, node: SprocketNode, topic: str
) -> None:
    long = "a long story " * 1_000
    go.run(
        "produce", names=node.names, group="p", topic=topic, how="sync",
        messages=[{"body": long}, {"body": "late", "delayLevel": 3}],
    )  # fmt: skip
    wait_until(lambda: len(stored(node, topic)) == 2)
    by_body = {message.body: message for message in stored(node, topic)}
    assert by_body[long.encode()].record_bytes < len(long) / 10
    assert by_body[b"late"].stored_ms - by_body[b"late"].born_ms >= 1_000

    shards = [{"body": f"{n:02}", "sharding": "one"} for n in range(10)]
    told = go.run(
        "produce", names=node.names, group="p", topic=topic, how="sharded", messages=shards
    )
    assert len({line["queue"] for line in told}) == 1
    in_order = [m.body for m in stored(node, topic) if len(m.body) == 2]
    assert in_order == [b"%02d" % n for n in range(10)]


def test_a_go_consumer_keeps_the_order_of_each_queue(
    go: Foreign, node: SprocketNode, topic: str
) -> None:
    send(node, topic, *(Message(topic, b"%03d" % n) for n in range(100)))
    task = {"names": node.names, "group": f"G_{topic}", "topic": topic, "expression": "*"}
    with go.start("consume", **task, isOrdered=True) as consumer:
        wait_until(lambda: len(consumer.messages) >= 100)
        for queue in range(QUEUES):
            offsets = [m["offset"] for m in consumer.messages if m["queue"] == queue]
            assert offsets == list(range(25))


def test_a_group_that_go_consumes_is_reset_while_it_runs(
    go: Foreign, node: SprocketNode, topic: str
) -> None:
    send(node, topic, *(Message(topic, b"%d" % n) for n in range(8)))
    task = {"names": node.names, "group": f"G_{topic}", "topic": topic, "expression": "*"}
    with go.start("consume", **task) as consumer:
        wait_until(lambda: len(consumer.messages) == 8)
        cli(node, "group", "reset", f"G_{topic}", topic, "--to", "first", "--yes")
        wait_until(lambda: consumer.bodies() == sorted("01234567" * 2))


def test_transactions_of_a_go_producer_end_as_it_says(
    go: Foreign, node: SprocketNode, topic: str
) -> None:
    fates = ["commit", "rollback", "commit later", "rollback later"]
    with go.start(
        "transact",
        names=node.names,
        group=f"P_{topic}",
        topic=topic,
        messages=[{"body": fate} for fate in fates],
    ) as producer:
        wait_until(lambda: len(stored(node, topic)) == 2)
        wait_until(
            lambda: (
                {line.get("asked") for line in producer.told} >= {"commit later", "rollback later"}
            )
        )
    assert {message.body for message in stored(node, topic)} == {b"commit", b"commit later"}


def test_go_asks_and_we_answer(go: Foreign, node: SprocketNode, topic: str) -> None:
    async def main() -> None:
        async with PushConsumer(f"G_{topic}", nameservers=node.names, start="first") as member:

            @member.on(topic)
            async def answer(message: StoredMessage) -> None:
                await member.reply(message, b"re:" + message.body)

            told = await asyncio.to_thread(
                go.run,
                "produce",
                names=node.names,
                group=f"P_{topic}",
                topic=topic,
                how="request",
                messages=[{"body": "one"}, {"body": "two"}],
            )
            assert told == [{"reply": "re:one"}, {"reply": "re:two"}]

    run(main())


def test_we_ask_and_go_answers(go: Foreign, node: SprocketNode, topic: str) -> None:
    async def main() -> None:
        async with Producer(f"P_{topic}", nameservers=node.names) as producer:
            replies = await asyncio.gather(
                *(producer.request(Message(topic, b"%d" % n), timeout_ms=60_000) for n in range(3))
            )
            assert [reply.body for reply in replies] == [b"re:0", b"re:1", b"re:2"]

    task = {"names": node.names, "group": f"G_{topic}", "topic": topic, "expression": "*"}
    with go.start("consume", **task, how="answer"):
        run(main())


def test_pulls_of_go_end_in_three_ways(go: Foreign, node: SprocketNode, topic: str) -> None:
    send(node, topic, *(Message(topic, b"%d" % n) for n in range(2 * QUEUES)))
    task = {"names": node.names, "group": "g", "topic": topic, "broker": "broker-a", "queue": 1}
    found, *messages = go.run("pull", **task, offset=0)
    assert found == {"status": 0, "next": 2, "min": 0, "max": 2}
    assert [message["body"] for message in messages] == ["1", "5"]
    (nothing,) = go.run("pull", **task, offset=2)
    assert (nothing["status"], nothing["next"]) == (1, 2)
    (beyond,) = go.run("pull", **task, offset=9)
    assert (beyond["status"], beyond["next"]) == (3, 2)


def test_the_admin_of_go_makes_lists_and_deletes(
    go: Foreign, node: SprocketNode, topic: str
) -> None:
    cli(node, "group", "create", "counted")
    (told,) = go.run("administer", names=node.names, broker=node.address, topic="MadeByGo")
    assert {topic, "MadeByGo"} <= set(told["topics"])
    assert "counted" in told["groups"]
    assert "MadeByGo" not in cli(node, "topic", "list")
