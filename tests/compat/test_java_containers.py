"""Java's clients and its admin tool against a container of brokers."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.parts import sprocket
from tests.cli.test_containers import NODE, free_ports
from tests.cli.test_serve import end, first_line, serving
from tests.compat.javaland import (
    QUICK_REBALANCE,
    JavaCallError,
    JavaDriver,
    mqadmin,
    wait_until,
)

pytestmark = pytest.mark.java


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The addresses of a name server and of a container of two brokers."""
    words = ("--processes", "2", "--store", str(tmp_path_factory.mktemp("container")))
    with serving(*NODE, *words, "--broker-port", str(free_ports(3))) as parent:
        line = first_line(parent)
        yield {
            "names": line.split("name server ")[1].split(",")[0],
            "container": line.split("container ")[1].split(",")[0],
        }
        assert end(parent, signal.SIGTERM)[0] == 0


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[JavaDriver]:
    work = tmp_path_factory.mktemp("container-driver")
    with JavaDriver(work=work, properties=QUICK_REBALANCE) as running:
        yield running


def test_a_java_producer_finds_all_brokers_of_a_topic_that_its_first_message_makes(
    node: dict[str, str], driver: JavaDriver
) -> None:
    driver.call("producer.start", group="p", namesrv=node["names"])
    driver.call(
        "consumer.start", group="g", namesrv=node["names"], topic="made",
        set={"consumeFromWhere": "CONSUME_FROM_FIRST_OFFSET"},
    )  # fmt: skip
    brokers = {driver.call("producer.send", topic="made", text="0")["brokerName"]}
    route = mqadmin("topicRoute", "-t", "made", namesrv=node["names"])
    assert '"broker-a-0"' in route
    assert '"broker-a-1"' in route
    sent = 1

    def both_take_messages() -> bool:
        nonlocal sent
        brokers.add(driver.call("producer.send", topic="made", text=str(sent))["brokerName"])
        sent += 1
        return brokers == {"broker-a-0", "broker-a-1"}

    wait_until(both_take_messages)
    driver.wait_messages(sent)


def test_mqadmin_adds_and_removes_a_broker(node: dict[str, str], tmp_path: Path) -> None:
    file = tmp_path / "extra.conf"
    file.write_text(
        "brokerClusterName=DefaultCluster\nbrokerName=extra\n"
        f"listenPort={free_ports(1)}\nnamesrvAddr={node['names']}\n"
        f"storePathRootDir={tmp_path}/extra\n"
    )
    at = ("-c", node["container"], "-b")
    said = mqadmin("addBroker", *at, str(file))
    assert f"add broker to {node['container']} success" in said
    assert "extra" in sprocket("cluster", "-n", node["names"]).out
    assert "runs here already" in mqadmin("addBroker", *at, str(file))
    said = mqadmin("removeBroker", *at, "DefaultCluster:extra:0")
    assert f"remove broker from {node['container']} success" in said
    assert "extra" not in sprocket("cluster", "-n", node["names"]).out
    assert "Broker not exist" in mqadmin("removeBroker", *at, "DefaultCluster:extra:0")


def test_keys_of_an_ordered_topic_keep_their_queues_while_a_broker_is_down(
    node: dict[str, str], driver: JavaDriver, tmp_path: Path
) -> None:
    made = (
        "updateTopic",
        "-c",
        "DefaultCluster",
        "-t",
        "steps",
        "-r",
        "3",
        "-w",
        "3",
        "-o",
        "true",
    )
    assert "success" in mqadmin(*made, namesrv=node["names"])
    route = mqadmin("topicRoute", "-t", "steps", namesrv=node["names"])
    assert "broker-a-0:3" in route
    assert "broker-a-1:3" in route
    quick = {"pollNameServerInterval": 500}
    driver.call("producer.start", name="ordered", group="ordered", namesrv=node["names"], set=quick)

    def queue_of(key: int) -> tuple[str, int] | None:
        """Where the message of a key goes; None if it is refused."""
        try:
            sent = driver.call(
                "producer.send", name="ordered", topic="steps", text="x", hash=key, timeoutMs=1000
            )
        except JavaCallError:
            return None
        return sent["brokerName"], sent["queueId"]

    before = {key: queue_of(key) for key in range(6)}
    assert {each[0] for each in before.values() if each} == {"broker-a-0", "broker-a-1"}
    at = ("-c", node["container"], "-b")
    assert "success" in mqadmin("removeBroker", *at, "DefaultCluster:broker-a-1:0")
    time.sleep(2)  # some refreshes of the producer's route
    for key, queue in before.items():
        assert queue is not None
        assert queue_of(key) == (queue if queue[0] == "broker-a-0" else None)
    (tmp_path / "again.conf").write_text("brokerName=broker-a-1\n")
    assert "success" in mqadmin("addBroker", *at, str(tmp_path / "again.conf"))
    wait_until(lambda: {key: queue_of(key) for key in range(6)} == before)
