"""Brokers and name servers of both kinds, registered at each other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.compat.javaland import (
    JavaBroker,
    JavaCallError,
    JavaDriver,
    JavaNameServer,
    Json,
    mqadmin,
    wait_until,
)
from tests.compat.sprocketland import SprocketBroker, SprocketNameServer, SprocketNode

pytestmark = pytest.mark.java


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("registration")


@pytest.fixture(scope="module")
def our_names(work: Path) -> Iterator[SprocketNameServer]:
    with SprocketNameServer(work) as running:
        yield running


@pytest.fixture(scope="module")
def java_names(work: Path) -> Iterator[JavaNameServer]:
    with JavaNameServer(work) as running:
        yield running


@pytest.fixture(scope="module")
def java_broker(work: Path, our_names: SprocketNameServer) -> Iterator[JavaBroker]:
    with JavaBroker(work, our_names.address, name="java-b") as running:
        yield running


@pytest.fixture(scope="module")
def our_broker(
    work: Path, java_names: JavaNameServer, our_names: SprocketNameServer
) -> Iterator[SprocketBroker]:
    """Ours, at a Java name server and at one of ours at the same time."""
    names = (java_names.address, our_names.address)
    settings = {"broker.cluster": "Ours"}
    with SprocketBroker(work, *names, name="our-b", settings=settings) as running:
        yield running


@pytest.fixture(scope="module")
def driver(work: Path) -> Iterator[JavaDriver]:
    with JavaDriver(work=work) as running:
        yield running


def brokers_of(driver: JavaDriver, producer: str, topic: str) -> set[str]:
    """Names of the brokers that a producer would send to."""
    try:
        queues: list[Json] = driver.call("producer.queues", name=producer, topic=topic)["queues"]
    except JavaCallError:
        return set()
    return {queue["brokerName"] for queue in queues}


@pytest.fixture(scope="module")
def producer_at(driver: JavaDriver) -> Callable[[str], str]:
    """Starts a producer at a name server; each has a client id of its own, so routes of its own."""

    @cache
    def start(names: str) -> str:
        name = "at-" + names.replace(".", "-").replace(":", "-")
        driver.call("producer.start", name=name, group=name, namesrv=names, instance=name)
        return name

    return start


def test_a_java_broker_is_found_through_our_name_server(
    our_names: SprocketNameServer,
    java_broker: JavaBroker,
    driver: JavaDriver,
    producer_at: Callable[[str], str],
) -> None:
    at = our_names.address
    wait_until(lambda: "java-b" in cluster_brokers(at))
    assert java_broker.address in mqadmin("clusterList", namesrv=at)

    made = mqadmin(
        *("updateTopic", "-c", "DefaultCluster", "-t", "Made", "-r", "3", "-w", "3"), namesrv=at
    )
    assert f"create topic to {java_broker.address} success" in made
    wait_until(lambda: "Made" in mqadmin("topicList", namesrv=at).split())
    route = mqadmin("topicRoute", "-t", "Made", namesrv=at)
    assert java_broker.address in route
    assert '"readQueueNums":3' in route.replace(" ", "")

    producer = producer_at(at)
    wait_until(lambda: brokers_of(driver, producer, "Made") == {"java-b"})
    sent = driver.call("producer.send", name=producer, topic="Made", body=b"x")
    assert sent["status"] == "SEND_OK"


def test_a_topic_that_a_java_broker_makes_by_itself_is_found_too(
    our_names: SprocketNameServer,
    java_broker: JavaBroker,
    driver: JavaDriver,
    producer_at: Callable[[str], str],
) -> None:
    producer = producer_at(our_names.address)
    driver.call("producer.send", name=producer, topic="ByItself", body=b"x")
    wait_until(lambda: "ByItself" in mqadmin("topicList", namesrv=our_names.address).split())


def test_a_topic_deleted_through_our_name_server_is_gone(
    our_names: SprocketNameServer, java_broker: JavaBroker
) -> None:
    at = our_names.address
    mqadmin("updateTopic", "-c", "DefaultCluster", "-t", "Short", namesrv=at)
    wait_until(lambda: "Short" in mqadmin("topicList", namesrv=at).split())

    said = mqadmin("deleteTopic", "-c", "DefaultCluster", "-t", "Short", namesrv=at)

    assert "delete topic [Short] from NameServer success" in said
    assert "Short" not in mqadmin("topicList", namesrv=at).split()


def test_settings_of_java_brokers_go_through_our_name_server(
    our_names: SprocketNameServer, java_broker: JavaBroker
) -> None:
    at = our_names.address
    mqadmin("updateKvConfig", "-s", "N", "-k", "colour", "-v", "grün", namesrv=at)
    mqadmin("updateOrderConf", "-t", "Made", "-v", "java-b:3", "-m", "put", namesrv=at)
    assert "java-b:3" in mqadmin("updateOrderConf", "-t", "Made", "-m", "get", namesrv=at)
    wiped = mqadmin("wipeWritePerm", "-b", "java-b", namesrv=at)
    assert "OK" in wiped
    assert '"perm":4' in mqadmin("topicRoute", "-t", "Made", namesrv=at).replace(" ", "")
    assert "OK" in mqadmin("addWritePerm", "-b", "java-b", namesrv=at)
    assert '"perm":6' in mqadmin("topicRoute", "-t", "Made", namesrv=at).replace(" ", "")


def test_our_broker_is_found_through_both_name_servers(
    our_names: SprocketNameServer,
    java_names: JavaNameServer,
    our_broker: SprocketBroker,
    driver: JavaDriver,
    producer_at: Callable[[str], str],
) -> None:
    for at in (java_names.address, our_names.address):
        wait_until(lambda at=at: our_broker.address in mqadmin("clusterList", namesrv=at))
        producer = producer_at(at)
        topic = f"Ours{at.rpartition(':')[2]}"
        made = mqadmin("updateTopic", "-b", our_broker.address, "-t", topic, namesrv=at)
        assert "success" in made
        wait_until(
            lambda topic=topic, producer=producer: brokers_of(driver, producer, topic) == {"our-b"}
        )
        sent = driver.call("producer.send", name=producer, topic=topic, body=b"x")
        assert sent["brokerName"] == "our-b"


def test_a_topic_that_our_broker_makes_is_told_to_both_name_servers(
    our_names: SprocketNameServer,
    java_names: JavaNameServer,
    our_broker: SprocketBroker,
    driver: JavaDriver,
    producer_at: Callable[[str], str],
) -> None:
    producer = producer_at(java_names.address)
    driver.call("producer.send", name=producer, topic="OursByItself", body=b"x")
    for at in (java_names.address, our_names.address):
        wait_until(lambda at=at: "OursByItself" in mqadmin("topicList", namesrv=at).split())


def test_both_kinds_of_broker_share_a_topic(
    our_names: SprocketNameServer,
    java_broker: JavaBroker,
    our_broker: SprocketBroker,
    driver: JavaDriver,
    producer_at: Callable[[str], str],
) -> None:
    at = our_names.address
    for address in (java_broker.address, our_broker.address):
        mqadmin("updateTopic", "-b", address, "-t", "Shared", "-r", "2", "-w", "2", namesrv=at)
    producer = producer_at(at)
    wait_until(lambda: brokers_of(driver, producer, "Shared") == {"java-b", "our-b"})

    messages: list[Json] = [{"text": str(number)} for number in range(8)]
    sent = driver.call("producer.sendMany", name=producer, topic="Shared", messages=messages)

    where = [result["brokerName"] for result in sent["results"]]
    assert (where.count("java-b"), where.count("our-b")) == (4, 4)
    driver.call("consumer.start", group="GShared", namesrv=at, topic="Shared", instance="shared")
    heard = driver.wait_messages(8)
    assert sorted(message["body"] for message in heard) == [b"%d" % n for n in range(8)]
    driver.call("consumer.stop")


def test_brokers_that_end_in_order_leave_the_routes_at_once(
    our_names: SprocketNameServer, java_names: JavaNameServer, driver: JavaDriver, work: Path
) -> None:
    names = (java_names.address, our_names.address)
    ours = SprocketBroker(work, *names, name="our-leaving").start()
    java = JavaBroker(
        work, list(names), name="java-leaving", settings={"popConsumerFSServiceInit": False}
    ).start()
    for at in names:
        wait_until(lambda at=at: {"our-leaving", "java-leaving"} <= cluster_brokers(at))

    ours.stop()
    java.stop()

    for at in names:  # Java's name server takes a broker's leave beside other work
        wait_until(lambda at=at: not {"our-leaving", "java-leaving"} & cluster_brokers(at))


def test_brokers_that_are_killed_leave_the_routes_at_once(
    our_names: SprocketNameServer, java_names: JavaNameServer, work: Path
) -> None:
    names = (java_names.address, our_names.address)
    with (
        SprocketBroker(work, *names, name="our-killed"),
        JavaBroker(work, list(names), name="java-killed"),
    ):
        for at in names:
            wait_until(lambda at=at: {"our-killed", "java-killed"} <= cluster_brokers(at))
    for at in names:
        wait_until(lambda at=at: not {"our-killed", "java-killed"} & cluster_brokers(at))


def test_our_broker_comes_back_to_a_java_name_server_that_was_away(
    work: Path, driver: JavaDriver
) -> None:
    with JavaNameServer(work, name="restarted") as names:
        settings = {"broker.registration_ms": 1000}
        with SprocketBroker(work, names.address, name="our-patient", settings=settings):
            wait_until(lambda: "our-patient" in cluster_brokers(names.address))
            names.kill()
            names.start()
            wait_until(lambda: "our-patient" in cluster_brokers(names.address))


def test_a_java_broker_comes_back_to_our_node_that_was_away(work: Path) -> None:
    node = SprocketNode(work).start()
    with JavaBroker(
        work, node.names, name="java-patient", settings={"registerNameServerPeriod": 10_000}
    ):
        wait_until(lambda: "java-patient" in cluster_brokers(node.names))
        node.kill()
        node.start()
        wait_until(lambda: "java-patient" in cluster_brokers(node.names))
        node.stop()


def cluster_brokers(names: str) -> set[str]:
    """Names of the brokers that a name server knows, as the admin tool lists them."""
    lines = mqadmin("clusterList", namesrv=names).splitlines()
    return {words[1] for line in lines if len(words := line.split()) > 3}
