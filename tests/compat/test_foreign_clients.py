"""What clients of other languages all do at our servers, alone and in one group with ours."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from sprocket import Message, PushConsumer, QueueId, StoredMessage
from sprocket.client.config import ConsumerConfig
from tests.compat import foreign
from tests.compat.foreign import Foreign, Json, dead, make_topic, send
from tests.compat.javaland import until, wait_until
from tests.compat.sprocketland import SprocketNode
from tests.support import run

pytestmark = pytest.mark.process

QUEUES = 4


@pytest.fixture(scope="module", params=[foreign.go, foreign.node], ids=["go", "node"])
def client(request: pytest.FixtureRequest) -> Foreign:
    made: Foreign = request.param()
    return made


@pytest.fixture(scope="module")
def node(client: Foreign, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SprocketNode]:
    """A node where nothing takes long."""
    settings = {"store.delay_levels": "1s " * 18}
    with SprocketNode(tmp_path_factory.mktemp("foreign"), settings=settings) as running:
        yield running


@pytest.fixture
def topic(request: pytest.FixtureRequest, node: SprocketNode) -> str:
    return make_topic(node, request.node.name, queues=QUEUES)


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ({"expression": "*"}, ["0", "1", "2", "3"]),
        ({"expression": "even"}, ["0", "2"]),
        ({"expression": "n > 1", "isSql": True}, ["2", "3"]),
    ],
    ids=["all", "tags", "sql92"],
)
def test_a_foreign_consumer_gets_what_it_chose(
    client: Foreign, node: SprocketNode, topic: str, choice: Json, expected: list[str]
) -> None:
    send(
        node,
        topic,
        *(
            Message(topic, b"%d" % n, tag=("even", "odd")[n % 2], properties={"n": str(n)})
            for n in range(4)
        ),
    )
    task = {"names": node.names, "group": f"G_{topic}", "topic": topic, **choice}
    with client.start("consume", **task) as consumer:
        wait_until(lambda: consumer.bodies() == expected)
        send(node, topic, Message(topic, b"2", tag="even", properties={"n": "2"}))
        wait_until(lambda: consumer.bodies() == sorted([*expected, "2"]))
    with client.start("consume", **task) as again:  # its offsets were kept
        send(node, topic, Message(topic, b"22", tag="even", properties={"n": "22"}))
        wait_until(lambda: "22" in again.bodies())
        assert set(again.bodies()) <= {"2", "22"}  # its last commit may come too late


def test_what_fails_at_a_foreign_consumer_comes_again_and_dies(
    client: Foreign, node: SprocketNode, topic: str
) -> None:
    send(node, topic, Message(topic, b"good"), Message(topic, b"bad", keys=["k"]))
    task = {"names": node.names, "group": f"G_{topic}", "topic": topic, "expression": "*"}
    with client.start("consume", **task, fails=["bad"], triesMax=2) as consumer:
        wait_until(lambda: consumer.bodies() == ["bad", "bad", "bad", "good"])
        times = [message["times"] for message in consumer.messages if message["body"] == "bad"]
        assert times == [0, 1, 2]
        wait_until(lambda: dead(node, f"G_{topic}"))
    (letter,) = dead(node, f"G_{topic}")
    assert (letter.body, letter.keys) == (b"bad", ["k"])


def test_broadcasting_foreign_consumers_get_everything_each(
    client: Foreign, node: SprocketNode, topic: str
) -> None:
    task = {"names": node.names, "group": f"G_{topic}", "topic": topic, "expression": "*"}
    with (
        client.start("consume", **task, isToAll=True) as one,
        client.start("consume", **task, isToAll=True) as other,
    ):
        send(node, topic, *(Message(topic, b"%d" % n) for n in range(8)))
        for each in (one, other):
            wait_until(lambda each=each: each.bodies() == sorted("01234567"))


def test_a_group_of_a_foreign_member_and_ours_shares_the_queues(
    client: Foreign, node: SprocketNode, topic: str
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
            theirs = await asyncio.to_thread(client.start, "consume", **task)
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
