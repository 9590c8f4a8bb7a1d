"""Java clients, old and new, with both kinds of header, against our name server and broker."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from sprocket.admin import brokers
from sprocket.admin.caller import Caller
from sprocket.remoting.pool import Pool
from tests.compat.javaland import QUICK_REBALANCE, JavaCallError, JavaDriver, Json, wait_until
from tests.compat.sprocketland import SprocketNode

pytestmark = pytest.mark.java

CLIENTS = [
    ("4.9.8", "JSON"), ("4.9.8", "ROCKETMQ"), ("5.3.3", "JSON"), ("5.3.3", "ROCKETMQ"),
]  # fmt: skip

#: For tests that mostly wait: each version and each kind of header once.
some_clients = pytest.mark.parametrize(
    "driver", [CLIENTS[0], CLIENTS[3]], indirect=True, ids="-".join
)


@pytest.fixture(scope="module", params=CLIENTS, ids="-".join)
def driver(
    request: pytest.FixtureRequest, node: SprocketNode, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[JavaDriver]:
    version, header = request.param
    properties = {**QUICK_REBALANCE, "rocketmq.serialize.type": header}
    work: Path = tmp_path_factory.mktemp("driver")
    with JavaDriver(version, work=work, properties=properties) as running:
        running.call("producer.start", group="p", namesrv=node.names)
        running.call("pull.start", group="reader", namesrv=node.names)
        yield running


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """A topic of the test's own, made by the first message."""
    name: str = request.node.name
    return "".join(c if c.isalnum() else "_" for c in name)


def bodies(messages: list[Json]) -> list[bytes]:
    return sorted(message["body"] for message in messages)


def numbered(count: int, **more: object) -> list[Json]:
    return [{"text": f"{number:03}", **more} for number in range(count)]


def texts(count: int) -> list[bytes]:
    return [b"%03d" % number for number in range(count)]


def listen(driver: JavaDriver, node: SprocketNode, name: str, topic: str, **more: object) -> None:
    """Starts a push consumer of the group ``G_topic`` with a client id of its own."""
    driver.call(
        "consumer.start",
        **{
            "name": name,
            "group": f"G_{topic}",
            "namesrv": node.names,
            "instance": name,
            "topic": topic,
            **more,
        },
    )


def pull(driver: JavaDriver, topic: str, queue: int, offset: int = 0, **more: object) -> Json:
    return driver.call("pull.pull", topic=topic, queueId=queue, offset=offset, **more)


def held(driver: JavaDriver, consumer: str, topic: str) -> set[int]:
    """Numbers of the topic's queues that a consumer has now."""
    queues = driver.call("consumer.queues", name=consumer)["queues"]
    return {queue["queueId"] for queue in queues if queue["topic"] == topic}


def test_a_message_arrives_as_it_was_sent(driver: JavaDriver, topic: str) -> None:
    sent = driver.call(
        "producer.send",
        topic=topic,
        body=bytes(range(256)),
        tag="weiß",
        keys=["k1", "schlüssel"],
        flag=-7,
        properties={"colour": "grün", "日本": "語😀"},
        queueId=1,
    )
    (message,) = pull(driver, topic, 1)["messages"]

    assert sent["status"] == "SEND_OK"
    assert (sent["queueOffset"], sent["regionId"]) == (0, "DefaultRegion")
    assert message["body"] == bytes(range(256))
    assert (message["tags"], message["keys"], message["flag"]) == ("weiß", "k1 schlüssel", -7)
    assert message["properties"]["colour"] == "grün"
    assert message["properties"]["日本"] == "語😀"
    assert (message["msgId"], message["offsetMsgId"]) == (sent["msgId"], sent["offsetMsgId"])
    assert message["bornHost"].startswith("/127.0.0.1:")
    assert abs(message["storeTimestamp"] - message["bornTimestamp"]) < 60_000


def test_every_way_to_send_reaches_a_push_consumer(
    driver: JavaDriver, node: SprocketNode, topic: str
) -> None:
    driver.call("producer.send", topic=topic, body=b"sync")
    driver.call("producer.send", topic=topic, body=b"async", mode="async", queueId=1)
    driver.call("producer.send", topic=topic, body=b"oneway", mode="oneway")
    batch = driver.call(
        "producer.sendBatch", topic=topic, messages=[{"body": b"b1", "tag": "t"}, {"body": b"b2"}]
    )
    many = driver.call(
        "producer.sendMany", topic=topic, mode="async", messages=[{"text": "m1"}, {"text": "m2"}]
    )
    delayed_at = time.time()
    driver.call("producer.send", topic=topic, body=b"delayed", delayLevel=1)
    listen(driver, node, topic, topic)

    messages = driver.wait_messages(8, consumer=topic)

    expected = [b"sync", b"async", b"oneway", b"b1", b"b2", b"m1", b"m2", b"delayed"]
    assert bodies(messages) == sorted(expected)
    assert [result["status"] for result in many["results"]] == ["SEND_OK", "SEND_OK"]
    of_batch = {m["msgId"]: m for m in messages if m["body"] in (b"b1", b"b2")}
    assert set(of_batch) == set(batch["msgId"].split(","))
    assert {m["tags"] for m in of_batch.values()} == {"t", None}
    (delayed,) = (m for m in messages if m["body"] == b"delayed")
    assert delayed["storeTimestamp"] / 1000 - delayed_at > 0.9
    assert delayed["topic"] == topic
    driver.call("consumer.stop", name=topic)


def test_a_long_body_travels_compressed(driver: JavaDriver, topic: str) -> None:
    body = b"a long story " * 10_000
    driver.call("producer.send", topic=topic, body=body, queueId=0)
    (message,) = pull(driver, topic, 0)["messages"]
    assert message["bodySize"] == len(body)
    assert message["sha256"] == hashlib.sha256(body).hexdigest()
    assert message["storeSize"] < len(body) / 10


def test_a_topic_made_by_its_first_message_has_the_producers_queues(
    driver: JavaDriver, topic: str
) -> None:
    driver.call("producer.send", topic=topic, body=b"x")
    queues = driver.call("producer.queues", topic=topic)["queues"]
    assert [queue["queueId"] for queue in queues] == [0, 1, 2, 3]
    assert {queue["brokerName"] for queue in queues} == {"broker-a"}


def test_a_created_topic_has_the_queues_asked_for(driver: JavaDriver, topic: str) -> None:
    driver.call("query.createTopic", topic=topic, queues=6)
    assert len(driver.call("producer.queues", topic=topic)["queues"]) == 6
    assert driver.call("producer.send", topic=topic, body=b"x", queueId=5)["queueId"] == 5


def test_the_hash_of_a_key_chooses_the_queue(driver: JavaDriver, topic: str) -> None:
    messages = [{"text": f"{n:03}", "hash": f"order-{n % 3}"} for n in range(12)]
    results = driver.call("producer.sendMany", topic=topic, messages=messages)["results"]
    for order in range(3):
        of_order = results[order::3]
        assert len({result["queueId"] for result in of_order}) == 1
        offsets = [result["queueOffset"] for result in of_order]
        assert offsets == sorted(offsets)


def test_what_the_broker_refuses_is_told_with_its_code(driver: JavaDriver, topic: str) -> None:
    driver.call("query.createTopic", topic=topic, queues=1)
    with pytest.raises(JavaCallError) as caught:
        driver.call("producer.send", topic=topic, queueId=7, body=b"x")
    assert caught.value.code in (29, 1)
    with pytest.raises(JavaCallError) as caught:
        driver.call("producer.send", topic="SCHEDULE_TOPIC_XXXX", body=b"x")
    assert caught.value.error == "MQClientException"
    with pytest.raises(JavaCallError) as caught:
        driver.call("producer.send", topic="RMQ_SYS_TRANS_HALF_TOPIC", body=b"x")
    assert caught.value.error == "MQClientException"


def test_tags_choose_messages(driver: JavaDriver, node: SprocketNode, topic: str) -> None:
    messages = [{"text": f"{n:03}", "tag": "ABC"[n % 3]} for n in range(30)]
    driver.call("producer.sendMany", topic=topic, messages=messages)
    listen(driver, node, topic, topic, expression="A || C")

    heard = driver.wait_messages(20, consumer=topic)

    assert bodies(heard) == [text for n, text in enumerate(texts(30)) if n % 3 != 1]
    driver.call("consumer.stop", name=topic)


@some_clients
def test_members_of_a_group_share_the_queues(
    driver: JavaDriver, node: SprocketNode, topic: str
) -> None:
    driver.call("query.createTopic", topic=topic, queues=4)
    one, two = f"{topic}_1", f"{topic}_2"
    listen(driver, node, one, topic)
    listen(driver, node, two, topic)
    wait_until(lambda: shares(driver, topic, one, two) == [2, 2])

    driver.call("producer.sendMany", topic=topic, messages=numbered(40))
    heard = driver.wait_events("message", 40, where=lambda event: event["topic"] == topic)

    assert bodies(heard) == texts(40)
    assert Counter(event["consumer"] for event in heard) == {one: 20, two: 20}
    driver.call("consumer.stop", name=one)
    wait_until(lambda: shares(driver, topic, two) == [4])
    later: list[Json] = [{"text": f"later-{number}"} for number in range(8)]
    driver.call("producer.sendMany", topic=topic, messages=later)
    driver.wait_events(
        "message",
        8,
        where=lambda event: event["topic"] == topic and event["body"].startswith(b"later-"),
    )
    heard_later = [event for event in driver.events("message") if event["topic"] == topic][40:]
    assert {event["consumer"] for event in heard_later} == {two}
    # What the first member had in its listeners when it was stopped may come again.
    counts = Counter(event["body"] for event in heard_later)
    assert all(counts[message["text"].encode()] == 1 for message in later)
    assert counts.keys() <= {*(message["text"].encode() for message in later), *texts(40)}
    driver.call("consumer.stop", name=two)


def wait_for_body(driver: JavaDriver, consumer: str, body: bytes) -> list[Json]:
    """Waits for a message, and returns all that the consumer got."""
    driver.wait_events(
        "message", 1, where=lambda event: (event["consumer"], event["body"]) == (consumer, body)
    )
    return [event for event in driver.events("message") if event["consumer"] == consumer]


def shares(driver: JavaDriver, topic: str, *consumers: str) -> list[int]:
    """How many queues each consumer has, if none has another's."""
    queues = [held(driver, consumer, topic) for consumer in consumers]
    return [len(share) for share in queues] if len(set().union(*queues)) == 4 else []


@some_clients
def test_what_fails_comes_again_until_it_succeeds(
    driver: JavaDriver, node: SprocketNode, topic: str
) -> None:
    driver.call("producer.send", topic=topic, body=b"good", keys="g")
    bad = driver.call("producer.send", topic=topic, body=b"bad", keys="b", tag="t")
    listen(driver, node, topic, topic, failTimes=2, failKeys=["b"], delayLevel=1)

    heard = driver.wait_messages(4, consumer=topic)

    seen = sorted((m["body"], m["reconsumeTimes"], m["failed"]) for m in heard)
    assert seen == [
        (b"bad", 0, True), (b"bad", 1, True), (b"bad", 2, False), (b"good", 0, False),
    ]  # fmt: skip
    tries = [m for m in heard if m["body"] == b"bad"]
    assert {(m["topic"], m["tags"], m["msgId"]) for m in tries} == {(topic, "t", bad["msgId"])}
    driver.call("consumer.stop", name=topic)


@some_clients
@pytest.mark.parametrize("orderly", [False, True], ids=["concurrently", "orderly"])
def test_what_always_fails_becomes_a_dead_letter(
    driver: JavaDriver, node: SprocketNode, topic: str, orderly: bool
) -> None:
    sent = driver.call("producer.send", topic=topic, body=b"bad", tag="t", properties={"n": "1"})
    rule = {"failTimes": -1, "maxReconsume": 1, "delayLevel": 1, "orderly": orderly}
    listen(driver, node, topic, topic, **rule)
    heard = driver.wait_messages(2, consumer=topic)
    assert [m["reconsumeTimes"] for m in heard] == [0, 1]

    dead = f"%DLQ%G_{topic}"
    wait_until(lambda: known(driver, dead))
    (letter,) = pull(driver, dead, 0, block=True)["messages"]

    assert (letter["body"], letter["tags"]) == (b"bad", "t")
    assert letter["properties"]["n"] == "1"
    assert letter["properties"]["RETRY_TOPIC" if orderly else "ORIGIN_MESSAGE_ID"]
    assert letter["properties"]["UNIQ_KEY"] == sent["msgId"]
    driver.call("consumer.stop", name=topic)


def known(driver: JavaDriver, topic: str) -> bool:
    try:
        return bool(driver.call("pull.queues", topic=topic)["queues"])
    except JavaCallError:
        return False


@some_clients
def test_an_ordered_consumer_gets_each_queue_in_order_and_leaves_it_to_the_next(
    driver: JavaDriver, node: SprocketNode, topic: str
) -> None:
    messages = [{"text": f"{n:03}", "queueId": n % 2, "keys": f"k{n}"} for n in range(20)]
    driver.call("producer.sendMany", topic=topic, messages=messages)
    one, two = f"{topic}_1", f"{topic}_2"
    listen(driver, node, one, topic, orderly=True, failTimes=1, failKeys=["k4", "k5"])

    heard = driver.wait_messages(22, consumer=one)

    for queue in range(2):
        in_turn = [m["body"] for m in heard if m["queueId"] == queue]
        expected = texts(20)[queue::2]
        assert in_turn == [*expected[:3], expected[2], *expected[3:]]
    driver.call("consumer.stop", name=one)
    listen(driver, node, two, topic, orderly=True)
    driver.call("producer.sendMany", topic=topic, messages=[{"text": "next", "queueId": 1}])
    after = wait_for_body(driver, two, b"next")
    # The last message of each queue was in the listener when the first consumer was stopped.
    assert {event["body"] for event in after} <= {b"018", b"019", b"next"}
    driver.call("consumer.stop", name=two)


@some_clients
def test_broadcasting_gives_every_member_everything(
    driver: JavaDriver, node: SprocketNode, topic: str
) -> None:
    driver.call("query.createTopic", topic=topic, queues=2)
    consumers = [f"{topic}_1", f"{topic}_2"]
    for consumer in consumers:
        listen(driver, node, consumer, topic, broadcast=True)
    driver.call("producer.sendMany", topic=topic, messages=numbered(10))
    for consumer in consumers:
        assert bodies(driver.wait_messages(10, consumer=consumer)) == texts(10)
        driver.call("consumer.stop", name=consumer)


def test_pulls_end_in_four_ways(driver: JavaDriver, topic: str) -> None:
    for number in range(3):
        driver.call("producer.send", topic=topic, body=b"x", tag="AB"[number % 2], queueId=2)

    found = pull(driver, topic, 2)
    only_b = pull(driver, topic, 2, expression="B")
    none = pull(driver, topic, 2, expression="C")
    at_end = pull(driver, topic, 2, 3)
    beyond = pull(driver, topic, 2, 9)
    two = pull(driver, topic, 2, max=2)

    assert (found["status"], found["nextOffset"], len(found["messages"])) == ("FOUND", 3, 3)
    assert (found["minOffset"], found["maxOffset"]) == (0, 3)
    assert [message["queueOffset"] for message in only_b["messages"]] == [1]
    assert (none["status"], none["nextOffset"]) == ("NO_MATCHED_MSG", 3)
    assert (at_end["status"], at_end["nextOffset"]) == ("NO_NEW_MSG", 3)
    assert (beyond["status"], beyond["nextOffset"]) == ("OFFSET_ILLEGAL", 3)
    assert (len(two["messages"]), two["nextOffset"]) == (2, 2)


def test_a_held_pull_is_answered_when_something_comes(driver: JavaDriver, topic: str) -> None:
    driver.call("query.createTopic", topic=topic, queues=1)
    waiting = driver.submit("pull.pull", topic=topic, queueId=0, offset=0, block=True)
    assert pull(driver, topic, 0)["status"] == "NO_NEW_MSG"
    assert not waiting.done()

    driver.call("producer.send", topic=topic, body=b"wakes it")

    assert bodies(waiting.result(120)["messages"]) == [b"wakes it"]


def test_offsets_are_kept_and_found_by_time(driver: JavaDriver, topic: str) -> None:
    for _ in range(3):
        driver.call("producer.send", topic=topic, body=b"x", queueId=2)
        time.sleep(0.02)  # so that each has a millisecond of its own
    times = [message["storeTimestamp"] for message in pull(driver, topic, 2)["messages"]]

    def search(at: int) -> int:
        found: int = driver.call("query.search", topic=topic, queueId=2, timestamp=at)["offset"]
        return found

    asked = [times[0] - 1, times[0], times[1], times[1] + 1, times[2], times[2] + 1]
    assert [search(at) for at in asked] == [0, 0, 1, 2, 2, 3]
    offsets = driver.call("query.offsets", topic=topic, queueId=2)
    assert (offsets["minOffset"], offsets["maxOffset"]) == (0, 3)
    assert offsets["earliestStoreTime"] == times[0]

    driver.call("pull.updateOffset", topic=topic, queueId=2, offset=2)
    wait_until(lambda: driver.call("pull.fetchOffset", topic=topic, queueId=2)["offset"] == 2)


def test_lite_pull_by_hand(driver: JavaDriver, node: SprocketNode, topic: str) -> None:
    driver.call("producer.send", topic=topic, body=b"first", queueId=0)
    driver.call("producer.send", topic=topic, body=b"second", queueId=0)
    driver.call("lite.start", name=topic, group=f"L_{topic}", namesrv=node.names, autoCommit=False)
    driver.call("lite.assign", name=topic, topic=topic, queueIds=[0])
    both = poll(driver, topic, 2)
    # Not before: a pull that is under way may still bring what lies before the new position.
    driver.call("lite.seek", name=topic, topic=topic, queueId=0, offset=1)
    again = poll(driver, topic, 1)
    driver.call("lite.commit", name=topic)

    assert bodies(both) == [b"first", b"second"]
    assert bodies(again) == [b"second"]
    committed = {"name": topic, "topic": topic, "queueId": 0}
    wait_until(lambda: driver.call("lite.committed", **committed)["offset"] == 2)
    driver.call("lite.stop", name=topic)


def poll(driver: JavaDriver, consumer: str, count: int) -> list[Json]:
    """Polls until so many messages have come."""
    polled: list[Json] = []
    deadline = time.monotonic() + 120.0
    while len(polled) < count and time.monotonic() < deadline:
        polled += driver.call("lite.poll", name=consumer, timeoutMs=2000)["messages"]
    return polled


@some_clients
def test_lite_pull_as_a_member(driver: JavaDriver, node: SprocketNode, topic: str) -> None:
    driver.call("producer.sendMany", topic=topic, messages=numbered(12))
    driver.call("lite.start", name=topic, group=f"L_{topic}", namesrv=node.names, topic=topic)
    assert bodies(poll(driver, topic, 12)) == texts(12)
    driver.call("lite.stop", name=topic)


def test_messages_are_found_by_id_and_by_key(driver: JavaDriver, topic: str) -> None:
    sent = driver.call("producer.send", topic=topic, body=b"found", keys=["one", "two"])
    driver.call("producer.send", topic=topic, body=b"other", keys=["two"])

    for message_id in (sent["offsetMsgId"], sent["msgId"]):
        viewed = driver.call("query.view", topic=topic, id=message_id)["message"]
        assert (viewed["body"], viewed["keys"]) == (b"found", "one two")
    assert bodies(driver.call("query.byKey", topic=topic, key="one")["messages"]) == [b"found"]
    both = driver.call("query.byKey", topic=topic, key="two")["messages"]
    assert bodies(both) == [b"found", b"other"]
    with pytest.raises(JavaCallError) as caught:
        driver.call("query.byKey", topic=topic, key="three")
    assert caught.value.code == 208


@some_clients
def test_a_consumer_that_stops_goes_on_where_it_was(
    driver: JavaDriver, node: SprocketNode, topic: str
) -> None:
    driver.call("producer.sendMany", topic=topic, messages=numbered(10))
    listen(driver, node, topic, topic, threads=1)
    last = driver.wait_messages(10, consumer=topic)[-1]
    driver.call("consumer.stop", name=topic)
    driver.call("producer.send", topic=topic, body=b"later")

    listen(driver, node, f"{topic}_2", topic)

    # The last one was in the listener when the consumer was stopped.
    after = wait_for_body(driver, f"{topic}_2", b"later")
    assert {event["body"] for event in after} <= {last["body"], b"later"}
    driver.call("consumer.stop", name=f"{topic}_2")


@some_clients
def test_a_client_over_a_limit_hears_that_the_broker_is_busy_and_goes_on_after(
    driver: JavaDriver, node: SprocketNode, topic: str
) -> None:
    driver.call("producer.send", topic=topic, body=b"first")
    group = f"G_{topic}"
    change_settings(node, f"topic {topic} requests=5/5; group {group} requests=4/4")
    try:
        refused: list[JavaCallError] = []
        sent = 1
        for number in range(200):
            try:
                driver.call("producer.send", topic=topic, body=b"%d" % number)
                sent += 1
            except JavaCallError as error:
                refused.append(error)
                if len(refused) == 3:
                    break
        assert [error.code for error in refused] == [2] * 3  # 5.3.3 has tried thrice by then
        assert "is over its limit of 5 requests a second" in refused[0].message
        change_settings(node, f"group {group} requests=4/4")
        for number in range(20):
            driver.call("producer.send", topic=topic, body=b"after %d" % number)
        listen(driver, node, topic, topic)
        messages = driver.wait_messages(sent + 20, consumer=topic)
        assert len({message["body"] for message in messages}) == sent + 20
        driver.call("consumer.stop", name=topic)
    finally:
        change_settings(node, "")


def change_settings(node: SprocketNode, rules: str) -> None:
    """Has the broker apply quotas."""

    async def change() -> None:
        async with Pool() as pool:
            caller = Caller(pool, [node.names], timeout_ms=60_000)
            await brokers.change_settings(caller, {"broker.quotas": rules})

    asyncio.run(change())
