"""The table of topics, and how topics come about."""

from __future__ import annotations

import pytest

from sprocket.base.errors import InvalidParameter, SystemBusy
from sprocket.broker.config import BrokerConfig
from sprocket.broker.settings import BrokerSettings
from sprocket.broker.tables.topics import Topics, new_topic, own_topics
from sprocket.message.topic import SCHEDULE, TEMPLATE
from sprocket.protocol.bodies import TopicConfig
from sprocket.store.config import StoreConfig
from sprocket.testing.clock import ManualClock


class Table(Topics):
    """Topics that note their changes."""

    def __init__(self, **settings: object) -> None:
        config = BrokerConfig(cluster="C", name="b", **settings)  # type: ignore[arg-type]
        self.settings = BrokerSettings(config, StoreConfig())
        self.changes: list[str] = []
        super().__init__(
            own_topics(config, delay_levels=18),
            self.settings,
            clock=ManualClock(),
            on_change=self.changes.append,
        )

    def sent(self, name: str, queues: int = 4, template: str = TEMPLATE) -> TopicConfig | None:
        return self.make_by_send(name, template=template, queues=queues, sys_flag=0)


def test_a_broker_begins_with_the_topics_that_rocketmq_has() -> None:
    assert set(Table().by_name) == {
        "BenchmarkTest", "C", "C_REPLY_TOPIC", "OFFSET_MOVED_EVENT", "RMQ_SYS_TRANS_HALF_TOPIC",
        "RMQ_SYS_TRANS_OP_HALF_TOPIC", "SCHEDULE_TOPIC_XXXX", "SELF_TEST_TOPIC", "TBW102", "b",
        "rmq_sys_REVIVE_LOG_C", "rmq_sys_SYNC_BROKER_MEMBER_b", "rmq_sys_wheel_timer",
    }  # fmt: skip
    assert Table().by_name[SCHEDULE].write_queue_nums == 18
    assert "RMQ_SYS_TRACE_TOPIC" in Table(trace_topic=True).by_name


@pytest.mark.parametrize(("asked", "made"), [(1, 1), (4, 4), (16, 8), (-3, 0)])
def test_a_first_send_makes_a_topic_with_the_queues_asked_for_up_to_the_templates(
    asked: int, made: int
) -> None:
    topics = Table()
    topic = topics.sent("T", asked)
    assert topic is not None
    assert (topic.read_queue_nums, topic.write_queue_nums, topic.perm) == (made, made, 6)
    assert topics.changes == ["T"]
    assert topics.version.counter == 1


def test_no_topic_is_made_without_a_template_that_may_be_inherited() -> None:
    topics = Table()
    topics.sent("T")
    assert topics.sent("U", template="nothing") is None
    assert topics.sent("U", template="T") is None


def test_with_automatic_creation_off_no_template_helps() -> None:
    topics = Table(auto_create_topics=False)
    assert TEMPLATE not in topics.by_name
    assert topics.sent("T") is None
    assert topics.sent("T", template="C") is None
    retry = topics.sent("%RETRY%g")
    assert retry is not None
    assert retry.write_queue_nums == 1


def test_the_template_in_a_file_is_dropped_once_automatic_creation_is_off() -> None:
    before = Table()
    before.sent("T")
    topics = Table(auto_create_topics=False)
    topics.load(before.to_json())
    assert "T" in topics.by_name
    assert TEMPLATE not in topics.by_name


def test_operators_make_and_change_topics_but_none_of_the_brokers_own() -> None:
    topics = Table()
    topics.put(new_topic("T", queues=2))
    topics.put(new_topic("T", queues=3, permission=4))
    assert topics.by_name["T"].perm == 4
    for name in ("", " ", "bad name!", "a.b", "x" * 128, SCHEDULE, "C", "b", "rmq_sys_x"):
        with pytest.raises(InvalidParameter):
            topics.put(new_topic(name, queues=1))
    topics.put(new_topic("x" * 127, queues=0, permission=0))


@pytest.mark.parametrize(("queues", "permission"), [(-1, 6), (1 << 20, 6), (1, 8), (1, -1)])
def test_numbers_that_cannot_be_are_refused(queues: int, permission: int) -> None:
    with pytest.raises(InvalidParameter):
        Table().put(new_topic("T", queues=queues, permission=permission))


def test_a_topic_can_be_removed_and_the_brokers_own_cannot() -> None:
    topics = Table()
    topics.sent("T")
    assert topics.remove("T")
    assert not topics.remove("T")
    for name in ("", TEMPLATE, "C"):
        with pytest.raises(InvalidParameter):
            topics.remove(name)


def test_the_number_of_topics_is_bounded() -> None:
    topics = Table(topics_max=32)
    for number in range(32 - len(topics.own_names)):
        topics.sent(f"T{number}")
    with pytest.raises(SystemBusy):
        topics.sent("one-more")


def test_a_groups_topic_takes_over_whether_it_is_consumed_in_order() -> None:
    topics = Table()
    assert not topics.make_for_group("%RETRY%g", queues=2).order
    assert topics.make_for_group("%RETRY%g", queues=2, order=True).order
    assert topics.make_for_group("%RETRY%g", queues=2).order
    assert topics.changes == ["%RETRY%g", "%RETRY%g"]


def test_saved_and_loaded_it_is_the_same() -> None:
    topics = Table()
    topics.put(new_topic("T", queues=2))
    again = Table()
    again.load(topics.to_json())
    assert again.to_json() == topics.to_json()
    empty = Table()
    empty.load({})
    assert empty.version.timestamp == ManualClock().now_ms()


def test_a_topic_of_copied_messages_grows_with_them_until_its_master_says_its_size() -> None:
    table = Table()
    for queues, wanted in (([0], 1), ([0, 2], 3), ([0, 1, 2, 3], 4)):
        assert table.add_missing({"T": queues}, is_copy=True) == ["T"]
        assert table.by_name["T"].read_queue_nums == table.by_name["T"].write_queue_nums == wanted
    assert not table.add_missing({"T": [1, 3]}, is_copy=True), "nothing is new"
    table.copy("T", new_topic("T", queues=2))
    assert not table.add_missing({"T": [0, 1, 2, 3]}, is_copy=True), "its operator knows better"
    assert table.by_name["T"].read_queue_nums == 2
