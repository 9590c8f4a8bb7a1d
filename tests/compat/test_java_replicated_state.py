"""What is not in the log, copied between our broker and Java's, both ways."""

from __future__ import annotations

from pathlib import Path

import pytest

from sprocket.base.deadline import Deadline
from sprocket.protocol.bodies import (
    DelayOffsets,
    GroupConfig,
    GroupTable,
    OffsetTable,
    TopicConfig,
    TopicTable,
)
from sprocket.protocol.command import Buffer, Command, Header
from sprocket.protocol.requests.group import AllGroupConfigs, CreateGroup, DeleteGroup
from sprocket.protocol.requests.offset import AllOffsets, UpdateOffset
from sprocket.protocol.requests.replica import AllDelayOffsets
from sprocket.protocol.requests.send import SendMessageV2
from sprocket.protocol.requests.topic import AllTopicConfigs, CreateTopic
from sprocket.remoting.pool import Pool
from tests.compat.javaland import JavaBroker, require_java, wait_until
from tests.compat.sprocketland import SprocketBroker, SprocketNameServer
from tests.support import PATIENT_MS, run

pytestmark = pytest.mark.java

BROKER, TOPIC, GROUP = "broker-a", "copied", "billing"
SLAVE = {"broker.role": "SLAVE", "broker.id": 1}


@pytest.fixture
def names(tmp_path: Path) -> SprocketNameServer:
    require_java()
    return SprocketNameServer(tmp_path)


def asked(address: str, header: Header, body: Buffer = b"") -> Command:
    async def main() -> Command:
        async with Pool() as pool:
            return await pool.ask(
                address, header, body=body, deadline=Deadline.after_ms(PATIENT_MS)
            )

    return run(main())


def fill(master: str) -> None:
    """A topic, a group, its offset, and a delayed message that is delivered."""
    asked(
        master,
        CreateTopic(
            topic=TOPIC,
            default_topic="TBW102",
            read_queue_nums=3,
            write_queue_nums=3,
            perm=6,
            topic_filter_type="SINGLE_TAG",
        ),
    )
    asked(master, CreateGroup(), GroupConfig(group_name=GROUP, retry_max_times=5).encode())
    delayed = SendMessageV2(
        producer_group="p", topic=TOPIC, queue_id=2, properties="DELAY\x011\x02", born_timestamp=1
    )
    asked(master, delayed, b"x")
    asked(
        master,
        UpdateOffset(consumer_group=GROUP, topic=TOPIC, queue_id=2, commit_offset=1),
    )
    wait_until(lambda: delays(master) == 1)


def delays(address: str) -> int | None:
    return DelayOffsets.decode(asked(address, AllDelayOffsets()).body).offset_table.get(1)


def topic_at(address: str) -> TopicConfig | None:
    table = TopicTable.decode(asked(address, AllTopicConfigs()).body)
    return table.topic_config_table.get(TOPIC)


def group_at(address: str) -> GroupConfig | None:
    table = GroupTable.decode(asked(address, AllGroupConfigs()).body)
    return table.subscription_group_table.get(GROUP)


def offset_at(address: str) -> int | None:
    table = OffsetTable.decode(asked(address, AllOffsets()).body).offset_table
    return table.get(f"{TOPIC}@{GROUP}", {}).get(2)


def has_all(address: str) -> bool:
    topic, group = topic_at(address), group_at(address)
    return (
        topic is not None
        and topic.read_queue_nums == 3
        and group is not None
        and group.retry_max_times == 5
        and offset_at(address) == 1
        and delays(address) == 1
    )


def test_a_java_slave_gets_topics_groups_offsets_and_delays_from_our_master(
    names: SprocketNameServer, tmp_path: Path
) -> None:
    ours = SprocketBroker(tmp_path, names.address, name=BROKER)
    with names, ours:
        fill(ours.address)
        with JavaBroker(tmp_path, names.address, name=BROKER, broker_id=1) as java:
            wait_until(lambda: has_all(java.address), within=120)


def test_our_slave_gets_topics_groups_offsets_and_delays_from_a_java_master(
    names: SprocketNameServer, tmp_path: Path
) -> None:
    with names, JavaBroker(tmp_path, names.address, name=BROKER) as java:
        fill(java.address)
        ours = SprocketBroker(tmp_path / "slave", names.address, name=BROKER, settings=SLAVE)
        with ours:
            wait_until(lambda: has_all(ours.address))
            asked(java.address, DeleteGroup(group_name=GROUP, clean_offset=True))
            wait_until(lambda: group_at(ours.address) is None and offset_at(ours.address) is None)
            ours.stop()
            ours.settings = {**ours.settings, "broker.role": "ASYNC_MASTER", "broker.id": 0}
            java.kill()
            ours.start()
            assert topic_at(ours.address) is not None
