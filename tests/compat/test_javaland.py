"""The harness itself: both Java clients against the Java broker."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.compat import javaland
from tests.compat.javaland import (
    CLIENT_VERSIONS,
    JavaBroker,
    JavaCallError,
    JavaDriver,
    JavaNameServer,
    JavaProcessError,
    Json,
    mqadmin,
    wait_until,
)

pytestmark = pytest.mark.java


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> Iterator[JavaNameServer]:
    with JavaNameServer(tmp_path_factory.mktemp("java")) as running:
        yield running


@pytest.fixture(scope="module")
def broker(names: JavaNameServer) -> Iterator[JavaBroker]:
    quick = javaland.QUICK_TRANSACTIONS
    with JavaBroker(names.work.parent, names.address, settings=quick) as running:
        yield running


@pytest.fixture(scope="module", params=CLIENT_VERSIONS)
def driver(
    request: pytest.FixtureRequest, names: JavaNameServer, broker: JavaBroker
) -> Iterator[JavaDriver]:
    quick = javaland.QUICK_REBALANCE
    with JavaDriver(request.param, work=names.work.parent, properties=quick) as running:
        running.call("producer.start", group="g", namesrv=names.address)
        yield running


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """A topic of the test's own, made by the first message."""
    name: str = request.node.name
    return "".join(c if c.isalnum() else "_" for c in name)


def bodies(messages: list[Json]) -> list[bytes]:
    return sorted(message["body"] for message in messages)


def test_every_way_to_send_reaches_a_push_consumer(
    driver: JavaDriver, names: JavaNameServer, topic: str
) -> None:
    sent = driver.call(
        "producer.send",
        topic=topic,
        body=b"sync",
        tag="A",
        keys=["k1", "k2"],
        flag=7,
        properties={"colour": "grün"},
        hash="order-1",
    )
    driver.call("producer.send", topic=topic, body=b"async", mode="async", queueId=1)
    driver.call("producer.send", topic=topic, body=b"oneway", mode="oneway")
    driver.call("producer.sendBatch", topic=topic, messages=[{"body": b"b1"}, {"body": b"b2"}])
    many = driver.call(
        "producer.sendMany", topic=topic, mode="async", messages=[{"text": "m1"}, {"text": "m2"}]
    )
    driver.call("producer.send", topic=topic, body=b"delayed", delayLevel=1)
    driver.call(
        "consumer.start", name=topic, group=f"G_{topic}", namesrv=names.address, topic=topic
    )

    messages = driver.wait_messages(8, consumer=topic)

    expected = [b"sync", b"async", b"oneway", b"b1", b"b2", b"m1", b"m2", b"delayed"]
    assert bodies(messages) == sorted(expected)
    assert [result["status"] for result in many["results"]] == ["SEND_OK", "SEND_OK"]
    first = next(message for message in messages if message["body"] == b"sync")
    assert first["msgId"] == sent["msgId"]
    assert first["offsetMsgId"] == sent["offsetMsgId"]
    assert (first["tags"], first["keys"], first["flag"]) == ("A", "k1 k2", 7)
    assert first["properties"]["colour"] == "grün"
    assert first["queueOffset"] == sent["queueOffset"]
    assert len(driver.call("consumer.queues", name=topic)["queues"]) >= 4
    driver.call("consumer.stop", name=topic)


def test_a_long_body_travels_compressed_and_is_shown_by_its_digest(
    driver: JavaDriver, names: JavaNameServer, topic: str
) -> None:
    body = b"a long story " * 10_000
    driver.call("producer.send", topic=topic, body=body, queueId=0)
    driver.call("pull.start", name=topic, group=f"G_{topic}", namesrv=names.address)
    driver.wait_queued(topic, 0, 1)

    (message,) = driver.call("pull.pull", name=topic, topic=topic, queueId=0, offset=0)["messages"]

    assert message["bodySize"] == len(body)
    assert message["sha256"] == hashlib.sha256(body).hexdigest()
    assert "body" not in message
    assert message["storeSize"] < len(body) / 10
    driver.call("pull.stop", name=topic)


@pytest.mark.parametrize("orderly", [False, True])
def test_a_message_that_fails_comes_again(
    driver: JavaDriver, names: JavaNameServer, topic: str, orderly: bool
) -> None:
    driver.call("producer.send", topic=topic, body=b"good", keys="g", queueId=0)
    driver.call("producer.send", topic=topic, body=b"bad", keys="b", queueId=0)
    driver.call(
        "consumer.start",
        name=topic,
        group=f"G_{topic}",
        namesrv=names.address,
        topic=topic,
        orderly=orderly,
        failTimes=1,
        failKeys=["b"],
        delayLevel=1,
        maxReconsume=3,
    )

    messages = driver.wait_messages(3, consumer=topic)

    seen = [(m["body"], m["reconsumeTimes"], m["failed"]) for m in messages]
    assert sorted(seen) == [(b"bad", 0, True), (b"bad", 1, False), (b"good", 0, False)]
    driver.call("consumer.stop", name=topic)


def test_pulls_offsets_and_single_messages(
    driver: JavaDriver, names: JavaNameServer, topic: str
) -> None:
    for number in range(3):
        tag = "AB"[number % 2]
        sent = driver.call(
            "producer.send",
            topic=topic,
            body=b"x",
            tag=tag,
            keys="k",
            queueId=2,
            properties={"n": str(number)},
        )
    driver.call("pull.start", name=topic, group=f"G_{topic}", namesrv=names.address)
    queue: Json = {"name": topic, "topic": topic, "queueId": 2}
    driver.wait_queued(topic, 2, 3)

    found = driver.call("pull.pull", **queue, offset=0)
    only_b = driver.call("pull.pull", **queue, offset=0, expression="B")
    by_sql = driver.call("pull.pull", **queue, offset=0, expression="n > 1", sql=True)
    beyond = driver.call("pull.pull", **queue, offset=9)
    driver.call("pull.updateOffset", **queue, offset=2)

    assert (found["status"], found["nextOffset"], len(found["messages"])) == ("FOUND", 3, 3)
    assert [message["queueOffset"] for message in only_b["messages"]] == [1]
    assert [message["queueOffset"] for message in by_sql["messages"]] == [2]
    assert (beyond["status"], beyond["nextOffset"]) == ("OFFSET_ILLEGAL", 3)
    assert driver.call("pull.fetchOffset", **queue)["offset"] == 2
    assert driver.call("query.offsets", client=topic, **queue)["maxOffset"] == 3
    first_stored = found["messages"][0]["storeTimestamp"]
    assert driver.call("query.search", **queue, timestamp=first_stored)["offset"] == 0
    viewed = driver.call("query.view", topic=topic, id=sent["offsetMsgId"])["message"]
    assert viewed["msgId"] == sent["msgId"]
    wait_until(lambda: has_keyed(driver, topic, "k", 3))
    driver.call("pull.stop", name=topic)


def has_keyed(driver: JavaDriver, topic: str, key: str, count: int) -> bool:
    """Whether the index, which comes after the queues, has so many messages."""
    try:
        return len(driver.call("query.byKey", topic=topic, key=key)["messages"]) == count
    except JavaCallError:
        return False


def test_a_held_pull_runs_beside_other_commands(
    driver: JavaDriver, names: JavaNameServer, topic: str
) -> None:
    driver.call("query.createTopic", topic=topic, queues=1)
    driver.call("pull.start", name=topic, group=f"G_{topic}", namesrv=names.address)
    held = driver.submit("pull.pull", name=topic, topic=topic, queueId=0, offset=0, block=True)

    driver.call("producer.send", topic=topic, body=b"wakes it")

    assert bodies(held.result(120)["messages"]) == [b"wakes it"]
    driver.call("pull.stop", name=topic)


def test_lite_pull(driver: JavaDriver, names: JavaNameServer, topic: str) -> None:
    driver.call("producer.send", topic=topic, body=b"first", queueId=0)
    driver.call("producer.send", topic=topic, body=b"second", queueId=0)
    driver.call("lite.start", group=f"G_{topic}", namesrv=names.address, autoCommit=False)
    driver.call("lite.assign", topic=topic, queueIds=[0])
    polled = driver.call("lite.poll", timeoutMs=20_000)["messages"]
    while len(polled) < 2:
        polled += driver.call("lite.poll", timeoutMs=20_000)["messages"]
    # Not before: a pull that is under way may still bring what lies before the new position.
    driver.call("lite.seek", topic=topic, queueId=0, offset=1)
    again: list[Json] = []
    while not again:
        again = driver.call("lite.poll", timeoutMs=20_000)["messages"]
    driver.call("lite.commit")

    assert bodies(polled) == [b"first", b"second"]
    assert bodies(again) == [b"second"]
    committed = {"topic": topic, "queueId": 0}
    wait_until(lambda: driver.call("lite.committed", **committed)["offset"] == 2)
    driver.call("lite.stop")


def test_transactions_end_as_planned(driver: JavaDriver, names: JavaNameServer, topic: str) -> None:
    address = names.address
    driver.call("producer.start", name=topic, group=topic, namesrv=address, transactional=True)
    for local in ("commit", "rollback", "unknown"):
        sent = driver.call(
            "producer.sendInTransaction",
            name=topic,
            topic=topic,
            text=local,
            local=local,
            check=["unknown", "commit"] if local == "unknown" else [local],
        )
        assert sent["status"] == "SEND_OK"
    driver.call("consumer.start", name=topic, group=f"G_{topic}", namesrv=address, topic=topic)

    # Java's broker asks once more whom it has no answer from yet, and then counts both answers.
    def heard() -> set[bytes]:
        return {event["body"] for event in driver.events("message") if event["consumer"] == topic}

    wait_until(lambda: heard() >= {b"commit", b"unknown"})
    assert heard() == {b"commit", b"unknown"}
    asked = (event for event in driver.events("check") if event["producer"] == topic)
    answers = [each["answer"] for each in asked if each["message"]["body"] == b"unknown"]
    assert (answers[0], {*answers[1:]}) == ("unknown", {"commit"})
    driver.call("consumer.stop", name=topic)
    driver.call("producer.stop", name=topic)


def test_a_request_gets_its_reply(driver: JavaDriver, names: JavaNameServer, topic: str) -> None:
    if driver.version == "5.3.3":
        pytest.skip("this client gives up as soon as its request is stored")
    driver.call("query.createTopic", topic=topic, queues=1)
    driver.call(
        "consumer.start",
        name=topic,
        group=f"G_{topic}",
        namesrv=names.address,
        topic=topic,
        reply="producer",
    )

    reply = driver.call("producer.request", topic=topic, body=b"ping", timeoutMs=60_000)["reply"]

    assert reply["body"] == b"re:ping"
    driver.call("consumer.stop", name=topic)


def test_a_failed_command_tells_class_and_code(driver: JavaDriver) -> None:
    with pytest.raises(JavaCallError) as caught:
        driver.call("producer.send", topic="no blanks", body=b"x")
    assert (caught.value.error, caught.value.code) == ("MQClientException", -1)

    with pytest.raises(JavaCallError, match="missing argument: topic"):
        driver.call("producer.send", body=b"x")
    with pytest.raises(JavaCallError, match="no such command"):
        driver.call("producer.juggle")


def test_the_driver_serves_an_event_loop(driver: JavaDriver, topic: str) -> None:
    async def send_two() -> list[Json]:
        sends = (driver.ask("producer.send", topic=topic, body=b"x") for _ in range(2))
        return await asyncio.gather(*sends)

    assert [sent["status"] for sent in asyncio.run(send_two())] == ["SEND_OK", "SEND_OK"]


def test_the_admin_tool_prints_what_it_found(names: JavaNameServer, broker: JavaBroker) -> None:
    assert broker.address in mqadmin("clusterList", namesrv=names.address)
    nothing = mqadmin("topicStatus", "-t", "nowhere", namesrv=[names.address])
    assert "No topic route info" in nothing


def test_a_server_that_cannot_start_tells_why(names: JavaNameServer, tmp_path: Path) -> None:
    with pytest.raises(JavaProcessError, match=r"(?s)ended while starting.*in use"):
        JavaNameServer(tmp_path, port=names.port).start()


def test_a_driver_that_ends_fails_what_still_waits(tmp_path: Path) -> None:
    driver = JavaDriver(work=tmp_path).start()
    driver.call("producer.start", group="g", namesrv="127.0.0.1:1", timeoutMs=60_000)
    waiting = driver.submit("producer.send", topic="T", body=b"x")
    driver.kill()
    assert isinstance(waiting.exception(60), JavaProcessError)


def test_without_java_the_reason_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda tool: None if tool == "mvn" else f"/bin/{tool}")
    assert javaland.available() == "needs Java and Maven, not found: mvn"
    monkeypatch.setitem(os.environ, "CI", "true")
    with pytest.raises(pytest.fail.Exception):
        javaland.require_java()
    monkeypatch.delitem(os.environ, "CI")
    with pytest.raises(pytest.skip.Exception):
        javaland.require_java()


def test_bytes_in_arguments_become_text_however_deep() -> None:
    args = {"messages": [{"body": b"\x00\xff"}], "names": ("a", b"b"), "n": 1}
    encoded = javaland._encodable(args)
    assert json.loads(json.dumps(encoded)) == {
        "messages": [{"body": "AP8="}],
        "names": ["a", "Yg=="],
        "n": 1,
    }
