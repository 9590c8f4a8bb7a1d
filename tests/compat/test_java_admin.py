"""Java's admin tool against our name server and broker."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.compat.javaland import QUICK_REBALANCE, JavaDriver, Json, mqadmin, wait_until
from tests.compat.sprocketland import SprocketNode

pytestmark = pytest.mark.java


class Scene(NamedTuple):
    """A topic with six messages in two queues, its producer, and a group that consumed them."""

    topic: str
    group: str
    producer: str
    first: Json


@pytest.fixture(scope="module")
def driver(node: SprocketNode, tmp_path_factory: pytest.TempPathFactory) -> Iterator[JavaDriver]:
    work = tmp_path_factory.mktemp("admin-driver")
    with JavaDriver(work=work, properties=QUICK_REBALANCE) as running:
        yield running


@pytest.fixture(scope="module")
def scene(node: SprocketNode, driver: JavaDriver) -> Scene:
    producer, group, topic = "AdminProducer", "AdminGroup", "AdminTopic"
    driver.call("producer.start", group=producer, namesrv=node.names)
    made = mqadmin(
        *("updateTopic", "-b", node.address, "-t", topic, "-r", "2", "-w", "2"), namesrv=node.names
    )
    assert f"create topic to {node.address} success" in made
    first = driver.call(
        "producer.send", topic=topic, text="hello", keys="key-1", tag="A", queueId=0
    )
    for number in range(5):
        driver.call("producer.send", topic=topic, text=f"more-{number}", queueId=1)
    driver.call(
        "consumer.start",
        group=group,
        namesrv=node.names,
        topic=topic,
        set={"persistConsumerOffsetInterval": 500},
    )
    driver.wait_messages(6)
    return Scene(topic, group, producer, first)


@pytest.fixture
def admin(node: SprocketNode) -> Callable[..., str]:
    """Runs the tool at our name server; what it prints, blanks in a row as one."""

    def run(*words: str) -> str:
        return re.sub(r"[ \t]+", " ", mqadmin(*words, namesrv=node.names))

    return run


def table(printed: str) -> list[list[str]]:
    """Words of the lines below a heading."""
    return [line.split() for line in printed.splitlines() if line and not line.startswith("#")]


def test_the_cluster_is_shown(node: SprocketNode, scene: Scene, admin: Callable[..., str]) -> None:
    printed = admin("clusterList")
    (row,) = table(printed)
    assert row[:5] == ["DefaultCluster", "broker-a", "0", node.address, "V5_3_3"]
    hours, space, is_active = row[-3:]
    assert 0 <= float(hours) < 1
    assert 0 < float(space) < 1
    assert is_active == "true"
    (row,) = table(admin("clusterList", "-m"))
    assert row[:2] == ["DefaultCluster", "broker-a"]
    assert int(row[-1]) >= 6
    assert int(row[-2]) >= 6


def test_topics_are_listed_and_described(
    node: SprocketNode, scene: Scene, admin: Callable[..., str]
) -> None:
    names = admin("topicList").split()
    assert {scene.topic, f"%RETRY%{scene.group}", "TBW102"} <= set(names)
    assert ["DefaultCluster", scene.topic, scene.group] in table(admin("topicList", "-c"))
    assert admin("topicClusterList", "-t", scene.topic).split() == ["DefaultCluster"]
    route = "".join(admin("topicRoute", "-t", scene.topic).split())
    assert f'"brokerAddrs":{{0:"{node.address}"}}' in route
    assert '"perm":6,"readQueueNums":2' in route
    rows = table(admin("topicStatus", "-t", scene.topic))
    assert [row[:4] for row in rows[:2]] == [
        ["broker-a", "0", "0", "1"],
        ["broker-a", "1", "0", "5"],
    ]
    assert "No topic route info" in admin("topicStatus", "-t", "Nowhere")


def test_topics_are_made_changed_and_deleted(node: SprocketNode, admin: Callable[..., str]) -> None:
    made = admin("updateTopic", "-c", "DefaultCluster", "-t", "Short", "-r", "3", "-w", "5")
    assert "readQueueNums=3, writeQueueNums=5, perm=RW-" in made
    changed = admin("updateTopicPerm", "-c", "DefaultCluster", "-t", "Short", "-p", "4")
    assert "from 6 to 4" in changed
    wait_until(lambda: '"perm":4' in "".join(admin("topicRoute", "-t", "Short").split()))
    deleted = admin("deleteTopic", "-c", "DefaultCluster", "-t", "Short")
    assert "delete topic [Short] from cluster [DefaultCluster] success" in deleted
    assert "Short" not in admin("topicList").split()
    ordered = admin("updateTopic", "-c", "DefaultCluster", "-t", "InOrder", "-r", "2", "-o", "true")
    assert "order=true" in ordered
    assert "broker-a:" in admin("updateOrderConf", "-t", "InOrder", "-m", "get")


def test_the_broker_tells_how_it_is_and_how_it_is_set(
    node: SprocketNode, scene: Scene, admin: Callable[..., str]
) -> None:
    status = admin("brokerStatus", "-b", node.address)
    for line in ("brokerVersionDesc : V5_3_3", "brokerActive : true", "dispatchBehindBytes : 0"):
        assert line in status
    puts = re.search(r"msgPutTotalTodayNow : (\d+)", status)
    assert puts
    assert int(puts[1]) >= 6
    assert f"{node.address} brokerVersionDesc : V5_3_3" in admin(
        "brokerStatus", "-c", "DefaultCluster"
    )
    config = admin("getBrokerConfig", "-b", node.address)
    assert "brokerName = broker-a" in config
    assert "mappedFileSizeCommitLog = 16777216" in config
    changed = admin(
        "updateBrokerConfig", "-b", node.address, "-k", "shortPollingTimeMills", "-v", "900"
    )
    assert "success" in changed
    assert "shortPollingTimeMills = 900" in admin("getBrokerConfig", "-b", node.address)
    for command in ("cleanExpiredCQ", "cleanUnusedTopic", "deleteExpiredCommitLog"):
        assert "success" in admin(command, "-b", node.address)


def test_groups_are_made_and_deleted(node: SprocketNode, admin: Callable[..., str]) -> None:
    made = admin("updateSubGroup", "-c", "DefaultCluster", "-g", "MadeGroup", "-r", "5")
    assert "retryMaxTimes=5" in made
    assert "retryMaxTimes = 5" in admin("getConsumerConfig", "-g", "MadeGroup")
    gone = admin("deleteSubGroup", "-c", "DefaultCluster", "-g", "MadeGroup")
    assert "delete subscription group [MadeGroup]" in gone
    assert "retryMaxTimes" not in admin("getConsumerConfig", "-g", "MadeGroup")


def test_messages_are_found_and_printed(scene: Scene, admin: Callable[..., str]) -> None:
    topic, first = scene.topic, scene.first
    for words in (
        ("queryMsgById", "-i", first["offsetMsgId"], "-t", topic),
        ("queryMsgByOffset", "-t", topic, "-b", "broker-a", "-i", "0", "-o", "0"),
        ("queryMsgByUniqueKey", "-t", topic, "-i", first["msgId"]),
    ):
        printed = admin(*words)
        assert f"Topic: {topic}" in printed, words
        assert "Keys: [key-1]" in printed, words
        assert f"UNIQ_KEY={first['msgId']}" in printed, words
    by_key = ("queryMsgByKey", "-t", topic, "-k", "key-1")
    wait_until(lambda: [first["msgId"], "0", "0"] in table(admin(*by_key)))
    assert admin("printMsg", "-t", topic).count("MSGID: ") == 6
    by_queue = admin("printMsgByQueue", "-t", topic, "-a", "broker-a", "-i", "1", "-p", "true")
    assert by_queue.count("MSGID: ") == 5
    assert admin("consumeMessage", "-t", topic, "-c", "3").count("MSGID: ") == 3


def test_messages_are_sent(node: SprocketNode, admin: Callable[..., str]) -> None:
    admin("updateTopic", "-b", node.address, "-t", "AdminSends", "-r", "2", "-w", "2")
    assert "SEND_OK" in admin("sendMessage", "-t", "AdminSends", "-p", "from the tool")
    assert admin("sendMsgStatus", "-b", "broker-a", "-s", "10", "-c", "2").count("SEND_OK") == 2
    assert admin("checkMsgSendRT", "-t", "AdminSends", "-a", "2", "-s", "10").count("true") == 2


def test_a_running_group_is_moved(
    node: SprocketNode, scene: Scene, driver: JavaDriver, admin: Callable[..., str]
) -> None:
    """Back to the beginning, so that everything comes again; then over what it has not seen."""
    topic, group, consumer = "AdminMoved", "AdminMovedGroup", "moved"
    admin("updateTopic", "-b", node.address, "-t", topic, "-r", "1", "-w", "1")
    began = int(time.time() * 1000) - 1000
    for number in range(3):
        driver.call("producer.send", topic=topic, text=str(number))
    driver.call(
        "consumer.start",
        name=consumer,
        group=group,
        namesrv=node.names,
        topic=topic,
        instance=consumer,
    )
    driver.wait_messages(3, consumer=consumer)

    moved = admin("resetOffsetByTime", "-g", group, "-t", topic, "-s", str(began))

    assert ["broker-a", "0", "0"] in table(moved)
    again = driver.wait_messages(6, consumer=consumer)
    assert sorted(message["body"] for message in again[3:]) == [b"0", b"1", b"2"]
    driver.call("consumer.stop", name=consumer)
    driver.call("producer.send", topic=topic, text="skipped")
    assert ["broker-a", "0", "4"] in table(
        admin("skipAccumulatedMessage", "-g", group, "-t", topic)
    )
    cloned = admin("cloneGroupOffset", "-s", group, "-d", "AdminClone", "-t", topic)
    assert "clone group offset success" in cloned
    rows = table(admin("brokerConsumeStats", "-b", node.address))
    assert [topic, "AdminClone", "broker-a", "0", "4", "4", "0"] in [row[:7] for row in rows]


def test_the_name_server_is_asked_and_told(
    node: SprocketNode, scene: Scene, admin: Callable[..., str]
) -> None:
    assert f"listenPort = {node.name_server_port}" in admin("getNamesrvConfig")
    assert "success" in admin("updateNamesrvConfig", "-k", "orderMessageEnable", "-v", "true")
    assert "orderMessageEnable = true" in admin("getNamesrvConfig")
    assert "success" in admin("updateNamesrvConfig", "-k", "orderMessageEnable", "-v", "false")
    assert "success" in admin("updateKvConfig", "-s", "Space", "-k", "colour", "-v", "grün")
    assert "success" in admin("deleteKvConfig", "-s", "Space", "-k", "colour")
    assert " OK, " in admin("wipeWritePerm", "-b", "broker-a")
    assert '"perm":4' in "".join(admin("topicRoute", "-t", scene.topic).split())
    assert " OK, " in admin("addWritePerm", "-b", "broker-a")
    assert '"perm":6' in "".join(admin("topicRoute", "-t", scene.topic).split())


def test_everything_is_exported(tmp_path: Path, scene: Scene, admin: Callable[..., str]) -> None:
    folder = str(tmp_path)
    for what in ("Configs", "Metadata", "Metrics"):
        assert "success" in admin(f"export{what}", "-c", "DefaultCluster", "-f", folder)
    assert scene.topic in (tmp_path / "metadata.json").read_text()


def test_groups_and_their_progress_are_shown(
    node: SprocketNode, scene: Scene, admin: Callable[..., str]
) -> None:
    progress = ("consumerProgress", "-g", scene.group)
    own = [
        [scene.topic, "broker-a", "0", "1", "1", "0"],
        [scene.topic, "broker-a", "1", "5", "5", "0"],
    ]

    def rows() -> list[list[str]]:
        return [row[:6] for row in table(admin(*progress)) if row[0] == scene.topic]

    wait_until(lambda: rows() == own)  # the consumer commits for the first time after ten seconds
    assert "Consume Diff Total: 0" in admin(*progress)
    everyone = table(admin("consumerProgress"))
    assert [scene.group, "1", "V5_3_3", "PUSH", "CLUSTERING"] in [row[:5] for row in everyone]
    stats = table(admin("brokerConsumeStats", "-b", node.address))
    assert [scene.topic, scene.group, "broker-a", "1", "5", "5", "0"] in [row[:7] for row in stats]
    connection = admin("consumerConnection", "-g", scene.group)
    assert re.search(r"127\.0\.0\.1:\d+ JAVA V5_3_3", connection)
    assert f"{scene.topic} *" in connection
    assert "ConsumeFromWhere: CONSUME_FROM_FIRST_OFFSET" in connection
    status = admin("consumerStatus", "-g", scene.group)
    assert "Rebalance OK" in status
    producers = admin("producerConnection", "-g", scene.producer, "-t", scene.topic)
    assert re.search(r"127\.0\.0\.1:\d+ JAVA V5_3_3", producers)
    assert f"producer group ({scene.producer})" in admin("producer", "-b", node.address)
    totals = [row[:2] for row in table(admin("statsAll")) if len(row) > 6]
    assert [scene.topic, scene.group] in totals


def test_the_entries_of_a_queue_are_shown(
    node: SprocketNode, scene: Scene, admin: Callable[..., str]
) -> None:
    printed = admin(
        *("queryCq", "-b", node.address, "-t", scene.topic, "-q", "1", "-i", "2", "-c", "2"),
        *("-g", scene.group),
    )
    assert "Subscription data" in printed
    assert '"subString":"*"' in printed
    assert len(re.findall(r"physicOffset=\d+, physicSize=\d+, tagsCode=0", printed)) == 2


def test_how_groups_consume_is_set_to_pull_and_to_pop(
    node: SprocketNode, scene: Scene, admin: Callable[..., str]
) -> None:
    words = ("setConsumeMode", "-b", node.address, "-t", scene.topic, "-g", scene.group, "-m")
    assert f"set consume mode to {node.address} success" in admin(*words, "PULL")
    assert f"set consume mode to {node.address} success" in admin(*words, "POP", "-q", "0")
