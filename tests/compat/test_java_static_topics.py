"""Java's admin tool makes static topics and moves their queues; a Java client uses them meanwhile.

The brokers are ours, or one of them is RocketMQ's; or the name server is.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import NamedTuple

import pytest

from tests.compat.javaland import (
    QUICK_REBALANCE,
    JavaBroker,
    JavaCallError,
    JavaDriver,
    JavaNameServer,
    Json,
    mqadmin,
    wait_until,
)
from tests.compat.sprocketland import SprocketBroker, SprocketNameServer

pytestmark = pytest.mark.java

#: Clients find moved queues within half a second.
QUICK_ROUTES = {"pollNameServerInterval": 500, "persistConsumerOffsetInterval": 500}
QUEUES = 4


class StaticLand(NamedTuple):
    names: str
    brokers: tuple[str, str]


@pytest.fixture(scope="module", params=["ours", "mixed", "java-names"])
def land(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[StaticLand]:
    work = tmp_path_factory.mktemp(request.param)
    with ExitStack() as running:
        is_java = request.param == "java-names"
        server = JavaNameServer(work) if is_java else SprocketNameServer(work)
        names = running.enter_context(server).address
        running.enter_context(SprocketBroker(work, names, name="broker-a"))
        if request.param != "mixed":
            running.enter_context(SprocketBroker(work, names, name="broker-b"))
        else:
            running.enter_context(JavaBroker(work, names, name="broker-b"))
        wait_until(
            lambda: {"broker-a", "broker-b"} <= set(mqadmin("clusterList", namesrv=names).split())
        )
        yield StaticLand(names, ("broker-a", "broker-b"))


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[JavaDriver]:
    work = tmp_path_factory.mktemp("static-driver")
    with JavaDriver(work=work, properties=QUICK_REBALANCE) as running:
        yield running


def send(driver: JavaDriver, producer: str, topic: str, text: str, queue: int) -> Json:
    """Sends to a queue; while it moves the former leader refuses, and it is sent again."""
    until = time.monotonic() + 120
    while True:
        try:
            return driver.call(
                "producer.send", name=producer, topic=topic, text=text, queueId=queue,
                brokerName="__syslo__global__",
            )  # fmt: skip
        except JavaCallError as error:
            if time.monotonic() > until:
                raise
            if "does not exit in request process" not in str(error):
                raise
            time.sleep(0.1)


def test_a_static_topic_is_used_across_moves(land: StaticLand, driver: JavaDriver) -> None:
    topic, producer, group = "Static", f"P-{land.names[-5:]}", f"G-{land.names[-5:]}"
    made = mqadmin("updateStaticTopic", "-t", topic, "-qn", str(QUEUES), "-b", "broker-a",
                   namesrv=land.names)  # fmt: skip
    assert "Exception" not in made, made
    driver.clear_events()
    driver.call(
        "producer.start", name=producer, group=producer, namesrv=land.names, set=QUICK_ROUTES
    )
    driver.call(
        "consumer.start", name=group, group=group, namesrv=land.names, topic=topic, orderly=True,
        set=QUICK_ROUTES, **{"from": "first"},
    )  # fmt: skip
    counter = itertools.count()
    sent: dict[int, list[tuple[int, str]]] = {queue: [] for queue in range(QUEUES)}

    def send_some(rounds: int) -> None:
        for _ in range(rounds):
            for queue in range(QUEUES):
                text = f"m{next(counter)}"
                result = send(driver, producer, topic, text, queue)
                assert result["queueId"] == queue
                sent[queue].append((result["queueOffset"], text))

    send_some(3)
    for target in ("broker-b", "broker-a,broker-b", "broker-a"):
        moved = mqadmin("remappingStaticTopic", "-t", topic, "-b", target, namesrv=land.names)
        assert "Exception" not in moved, moved
        send_some(3)
    total = sum(map(len, sent.values()))
    got = driver.wait_messages(total, consumer=group)
    time.sleep(3)
    got = [each for each in driver.events("message") if each["consumer"] == group]
    assert len(got) == total
    for queue, messages in sent.items():
        offsets = [offset for offset, _ in messages]
        assert offsets == sorted(set(offsets))
        mine = [each for each in got if each["queueId"] == queue]
        assert [(each["queueOffset"], each["body"].decode()) for each in mine] == messages
    driver.call("consumer.stop", name=group)
    send_some(1)
    driver.call(
        "consumer.start", name=group, group=group, namesrv=land.names, topic=topic, orderly=True,
        set=QUICK_ROUTES, **{"from": "first"},
    )  # fmt: skip
    driver.wait_messages(total + QUEUES, consumer=group)
    time.sleep(2)
    got = [each for each in driver.events("message") if each["consumer"] == group]
    assert len(got) == total + QUEUES
