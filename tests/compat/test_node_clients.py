"""A Node client in plain JavaScript at our servers, alone and in one group with ours."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from sprocket import Message, PushConsumer, QueueId, StoredMessage
from sprocket.client.config import ConsumerConfig
from sprocket.message.hosts import pack
from sprocket.message.ids import offset_id
from tests.compat import foreign
from tests.compat.foreign import Foreign, Json, dead, make_topic, send, stored
from tests.compat.javaland import until, wait_until
from tests.compat.sprocketland import SprocketNode
from tests.support import run

pytestmark = pytest.mark.process

QUEUES = 4


@pytest.fixture(scope="module")
def node_js() -> Foreign:
    return foreign.node()


@pytest.fixture(scope="module")
def node(node_js: Foreign, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SprocketNode]:
    """A node where nothing takes long."""
    settings = {"store.delay_levels": "1s " * 18}
    with SprocketNode(tmp_path_factory.mktemp("js"), settings=settings) as running:
        yield running


@pytest.fixture
def topic(request: pytest.FixtureRequest, node: SprocketNode) -> str:
    return make_topic(node, request.node.name, queues=QUEUES)


def test_what_a_node_producer_sends_is_stored_whole(
    node_js: Foreign, node: SprocketNode, topic: str
) -> None:
    sent = [
        {"body": "first", "tag": "paid", "keys": ["k1", "k2"], "properties": {"town": "Köln"}},
        {"body": "a long story " * 1_000},
        {"body": "late", "delayLevel": 3},
    ]
    told = node_js.run("produce", names=node.names, group="p", topic=topic, messages=sent)
    wait_until(lambda: len(stored(node, topic)) == 3)
    by_length = sorted(stored(node, topic), key=lambda message: len(message.body))
    late, first, long = by_length
    assert (first.body, first.tag, first.keys) == (b"first", "paid", ["k1", "k2"])
    assert first.properties["town"] == "Köln"
    assert long.body == b"a long story " * 1_000
    assert long.record_bytes < len(long.body) / 10
    assert late.stored_ms - late.born_ms >= 1_000
    host = pack(node.address)  # for this client ids are offset ids
    assert {offset_id(host, each.log_offset) for each in (first, long)} <= {
        line["id"] for line in told
    }


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ({"expression": "*"}, ["0", "1", "2", "3"]),
        ({"expression": "even"}, ["0", "2"]),
        ({"expression": "n > 1", "isSql": True}, ["2", "3"]),
    ],
    ids=["all", "tags", "sql92"],
)
def test_a_node_consumer_gets_what_it_chose(
    node_js: Foreign, node: SprocketNode, topic: str, choice: Json, expected: list[str]
) -> None:
    messages = (
        Message(topic, b"%d" % n, tag=("even", "odd")[n % 2], properties={"n": str(n)})
        for n in range(4)
    )
    send(node, topic, *messages)
    task = {"names": node.names, "group": f"G_{topic}", "topic": topic, **choice}
    with node_js.start("consume", **task) as consumer:
        wait_until(lambda: consumer.bodies() == expected)
        send(node, topic, Message(topic, b"2", tag="even", properties={"n": "2"}))
        wait_until(lambda: consumer.bodies() == sorted([*expected, "2"]))


def test_what_fails_at_a_node_consumer_comes_again_and_dies(
    node_js: Foreign, node: SprocketNode, topic: str
) -> None:
    send(node, topic, Message(topic, b"good"), Message(topic, b"bad", keys=["k"]))
    task = {"names": node.names, "group": f"G_{topic}", "topic": topic, "expression": "*"}
    with node_js.start("consume", **task, fails=["bad"], triesMax=2) as consumer:
        wait_until(lambda: dead(node, f"G_{topic}"), 90)
        assert consumer.bodies() == ["bad", "bad", "bad", "good"]
    (letter,) = dead(node, f"G_{topic}")
    assert (letter.body, letter.keys) == (b"bad", ["k"])


def test_a_group_of_a_node_member_and_ours_shares_the_queues(
    node_js: Foreign, node: SprocketNode, topic: str
) -> None:
    group = f"G_{topic}"
    ours: list[str] = []

    def queues_of(consumer: PushConsumer) -> list[QueueId]:
        return [queue for queue in consumer.queues if queue.topic == topic]

    async def main() -> None:
        config = ConsumerConfig(rebalance_ms=1_000)
        async with PushConsumer(
            group, nameservers=node.names, start="first", config=config
        ) as member:

            @member.on(topic)
            async def take(message: StoredMessage) -> None:
                ours.append(message.body.decode())

            await until(lambda: len(queues_of(member)) == QUEUES)
            task = {"names": node.names, "group": group, "topic": topic, "expression": "*"}
            theirs = await asyncio.to_thread(node_js.start, "consume", **task)
            try:
                await until(lambda: len(queues_of(member)) == QUEUES // 2)
                sent = set[str]()
                while not theirs.messages or not ours:
                    news = [b"%d" % (len(sent) + n) for n in range(QUEUES)]
                    await asyncio.to_thread(send, node, topic, *(Message(topic, n) for n in news))
                    sent |= {body.decode() for body in news}
                await until(lambda: set(ours) | set(theirs.bodies()) == sent)
            finally:
                theirs.kill()
            await until(lambda: len(queues_of(member)) == QUEUES)

    run(main())


def test_broadcasting_node_consumers_get_everything_each(
    node_js: Foreign, node: SprocketNode, topic: str, tmp_path: Path
) -> None:
    task = {"names": node.names, "group": f"G_{topic}", "topic": topic, "expression": "*"}
    with (
        node_js.start("consume", **task, isToAll=True) as one,
        node_js.start("consume", **task, isToAll=True) as other,
    ):
        send(node, topic, *(Message(topic, b"%d" % n) for n in range(8)))
        for each in (one, other):
            wait_until(lambda each=each: each.bodies() == sorted("01234567"))
