"""SQL92 filters: Java clients at our broker, our client at Java's, and both brokers' judgement."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sprocket.base.deadline import Deadline
from sprocket.client.producer import Producer
from sprocket.client.pull_consumer import PullConsumer
from sprocket.client.push_consumer import PushConsumer
from sprocket.message.message import Message, StoredMessage
from sprocket.message.queue import QueueId
from sprocket.message.record import scan
from sprocket.protocol.bodies import CheckClientBody, SubscriptionData
from sprocket.protocol.requests.client import CheckClient
from sprocket.protocol.requests.pull import SUBSCRIPTION, PullMessage
from sprocket.remoting.pool import Pool
from tests.compat.javaland import (
    QUICK_REBALANCE,
    JavaBroker,
    JavaCallError,
    JavaDriver,
    JavaNameServer,
    Json,
    queued,
    require_java,
)
from tests.compat.sprocketland import SprocketNode
from tests.compat.sql92_expressions import MESSAGES, expressions
from tests.support import run

pytestmark = [pytest.mark.java, pytest.mark.process]

CLIENTS = [("4.9.8", "JSON"), ("5.3.3", "ROCKETMQ")]
SQL = "n > 1 AND colour IN ('red', 'blue')"
SENT: list[Json] = [
    {"text": f"{n}", "tag": "t", "properties": {"n": str(n), "colour": colour}, "queueId": 0}
    for n, colour in enumerate(["red", "blue", "red", "green", "blue"])
]


@pytest.fixture(scope="module", params=CLIENTS, ids="-".join)
def driver(
    request: pytest.FixtureRequest, node: SprocketNode, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[JavaDriver]:
    version, header = request.param
    properties = {**QUICK_REBALANCE, "rocketmq.serialize.type": header}
    work: Path = tmp_path_factory.mktemp("driver")
    with JavaDriver(version, work=work, properties=properties) as running:
        running.call("producer.start", group="p", namesrv=node.names)
        yield running


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    name: str = request.node.name
    return "".join(c if c.isalnum() else "_" for c in name)


def listen(driver: JavaDriver, node: SprocketNode, topic: str, sql: str, **more: Any) -> None:
    driver.call(
        "consumer.start", name=topic, group=f"G_{topic}", namesrv=node.names, instance=topic,
        topic=topic, sql=True, expression=sql, **more,
    )  # fmt: skip


def test_a_push_consumer_gets_what_matches_and_again_what_it_gave_back(
    driver: JavaDriver, node: SprocketNode, topic: str
) -> None:
    driver.call("producer.sendMany", topic=topic, messages=SENT)
    rule = {"failTimes": 1, "failWith": "later", "delayLevel": 1}
    listen(driver, node, topic, SQL, **{"from": "first", **rule})

    messages = driver.wait_messages(4, consumer=topic)

    got = sorted((message["body"], message["reconsumeTimes"]) for message in messages)
    assert got == [(b"2", 0), (b"2", 1), (b"4", 0), (b"4", 1)]
    driver.call("consumer.stop", name=topic)


def test_a_wrong_condition_is_refused_when_the_consumer_starts(
    driver: JavaDriver, node: SprocketNode, topic: str
) -> None:
    driver.call("producer.sendMany", topic=topic, messages=SENT)
    with pytest.raises(JavaCallError) as caught:
        listen(driver, node, topic, "n > 1 AND")
    assert caught.value.code == 23
    assert "column 10" in caught.value.message


def test_a_pull_consumer_chooses_in_each_pull(
    driver: JavaDriver, node: SprocketNode, topic: str
) -> None:
    driver.call("producer.sendMany", topic=topic, messages=SENT)
    driver.call("pull.start", name=topic, group=f"G_{topic}", namesrv=node.names)
    asked: Json = {"name": topic, "topic": topic, "queueId": 0, "offset": 0}
    everything = driver.call("pull.pull", **asked)  # the client must have met the broker
    found = driver.call("pull.pull", **asked, expression=SQL, sql=True)
    assert (len(everything["messages"]), found["nextOffset"]) == (5, 5)
    assert [message["body"] for message in found["messages"]] == [b"2", b"4"]
    driver.call("pull.stop", name=topic)


#: A 4.9.8 client tells a broker that came back of its group within 30 s only.
@pytest.mark.parametrize("driver", [CLIENTS[1]], indirect=True, ids="-".join)
def test_after_a_kill_of_the_broker_the_filter_still_holds(
    driver: JavaDriver, tmp_path: Path, topic: str
) -> None:
    with SprocketNode(tmp_path) as own:
        name = f"P_{topic}"
        driver.call("producer.start", name=name, group=name, instance=name, namesrv=own.names)
        driver.call("producer.sendMany", name=name, topic=topic, messages=SENT)
        listen(driver, own, topic, SQL, **{"from": "first"})
        driver.wait_messages(2, consumer=topic)
        own.kill()
        own.start()
        later = [{**message, "text": f"later {message['text']}"} for message in SENT]
        driver.call("producer.sendMany", name=name, topic=topic, messages=later)
        messages = driver.wait_messages(4, consumer=topic)
        bodies = {message["body"] for message in messages}
        assert bodies == {b"2", b"4", b"later 2", b"later 4"}
        driver.call("consumer.stop", name=topic)
        driver.call("producer.stop", name=name)


CODE = """
def Red(message):
    return message.properties["colour"] == "red" and int(message.body) > 0
"""


def test_an_old_java_client_brings_a_filter_in_python(tmp_path: Path) -> None:
    """As it once brought Java: by name and source, through the filter server of the route."""
    require_java()
    settings = {"broker.filter_workers": 2}
    properties = {**QUICK_REBALANCE}
    with (
        SprocketNode(tmp_path, settings=settings) as own,
        JavaDriver("4.9.8", work=tmp_path, properties=properties) as driver,
    ):
        driver.call("producer.start", group="p", namesrv=own.names)
        driver.call("producer.sendMany", topic="coded", messages=SENT)
        driver.call(
            "consumer.start", group="G_coded", namesrv=own.names, topic="coded",
            expression="shop.filters.Red", source=CODE, **{"from": "first"},
        )  # fmt: skip
        driver.wait_messages(1)
        later = [{**message, "text": f"1{message['text']}"} for message in SENT]
        driver.call("producer.sendMany", topic="coded", messages=later)
        messages = driver.wait_messages(3)
        assert sorted(message["body"] for message in messages) == [b"10", b"12", b"2"]
        driver.call("consumer.stop")


@pytest.fixture(scope="module")
def java(tmp_path_factory: pytest.TempPathFactory) -> Iterator[JavaBroker]:
    require_java()
    folder = tmp_path_factory.mktemp("java")
    with JavaNameServer(folder) as names, JavaBroker(folder, names.address) as broker:
        yield broker


JUDGED = Path(__file__).parents[1] / "golden" / "vectors" / "sql92_judged.json"
#: Set, the file of Java's judgement is written anew.
RECORD = "SPROCKET_RECORD"


def test_both_brokers_judge_alike(java: JavaBroker) -> None:
    """Ours stands in `tests/filter/test_sql92.py` against the file; here the file is proved."""
    theirs = run(judged_there(java, expressions()))
    if os.environ.get(RECORD):
        lines = [f"{json.dumps(text)}: {json.dumps(got)}" for text, got in theirs.items()]
        JUDGED.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    assert theirs == json.loads(JUDGED.read_text())


async def judged_there(java: JavaBroker, texts: list[str]) -> dict[str, list[int] | None]:
    names = ";".join(java.name_servers)
    async with Producer("judged", nameservers=names) as producer:
        (queue, *_) = await producer.queues("judged")
        for n, properties in enumerate(MESSAGES):
            message = Message("judged", b"%d" % n)
            message.properties = dict(properties)
            await producer.send(message, queue=queue)
    async with PullConsumer("reader", nameservers=names) as reader:
        await queued(reader, queue, len(MESSAGES))
    async with Pool() as pool:
        return {text: await judgement(pool, java.address, queue, text) for text in texts}


async def judgement(pool: Pool, address: str, queue: QueueId, text: str) -> list[int] | None:
    subscription = SubscriptionData(
        topic=queue.topic, sub_string=text, expression_type="SQL92", sub_version=1
    )
    body = CheckClientBody(
        client_id="c", group="judges", namespace="", subscription_data=subscription
    ).encode()
    deadline = Deadline.after(120)
    checked = await pool.call(address, CheckClient(), body=body, deadline=deadline)
    if checked.code != 0:
        assert checked.code == 23, (text, checked.code, checked.remark)
        return None
    header = PullMessage(
        consumer_group="judges", topic=queue.topic, queue_id=queue.number, queue_offset=0,
        max_msg_nums=32, sys_flag=SUBSCRIPTION, subscription=text, expression_type="SQL92",
    )  # fmt: skip
    reply = await pool.call(address, header, deadline=deadline)
    return [int(message.body) for message in scan(bytes(reply.body))]


def test_our_consumers_choose_at_a_java_broker(java: JavaBroker) -> None:
    names = ";".join(java.name_servers)

    async def main() -> None:
        async with Producer("senders", nameservers=names) as producer:
            (queue, *_) = await producer.queues("chosen")
            for sent in SENT:
                message = Message("chosen", sent["text"].encode(), tag="t")
                message.properties = dict(sent["properties"])
                await producer.send(message, queue=queue)
        async with PullConsumer("reader", nameservers=names) as reader:
            await queued(reader, queue, len(SENT))
            pulled = await reader.pull(queue, 0, sql=SQL)
            assert [message.body for message in pulled.messages] == [b"2", b"4"]
            assert pulled.next_offset == 5
        consumer = PushConsumer("members", nameservers=names, start="first")
        got: list[bytes] = []
        done = asyncio.Event()

        @consumer.on("chosen", sql=SQL)
        async def take(message: StoredMessage) -> None:
            got.append(message.body)
            if len(got) == 2:
                done.set()

        async with consumer:
            await done.wait()
        assert sorted(got) == [b"2", b"4"]

    run(main())
