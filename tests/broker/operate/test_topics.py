"""Operators and topics."""

from __future__ import annotations

from sprocket.protocol.bodies import (
    GroupList,
    MappedTopic,
    MappingDetail,
    MappingItem,
    TopicConfig,
    TopicConfigList,
    TopicList,
    TopicTable,
)
from sprocket.protocol.requests.topic import (
    AllTopicConfigs,
    CleanUnusedTopics,
    CreateStaticTopic,
    CreateTopic,
    CreateTopics,
    DeleteTopic,
    SystemTopicsOfBroker,
    TopicConfigOf,
    TopicConsumers,
)
from tests.broker.parts import SUCCESS, Asker, play


def create(**changes: object) -> CreateTopic:
    fields = {
        "topic": "T",
        "default_topic": "TBW102",
        "read_queue_nums": 2,
        "write_queue_nums": 3,
        "perm": 6,
        "topic_filter_type": "SINGLE_TAG",
    }
    return CreateTopic(**(fields | changes))  # type: ignore[arg-type]


async def shown(asker: Asker, topic: str = "T") -> TopicConfig:
    reply = await asker.call(TopicConfigOf(topic=topic))
    assert reply.code == SUCCESS
    return TopicConfig.decode(reply.body)


def test_a_topic_is_made_changed_shown_and_deleted() -> None:
    async def test(asker: Asker) -> None:
        assert await asker.code(create(attributes="+message.type=FIFO")) == SUCCESS
        topic = await shown(asker)
        assert (topic.read_queue_nums, topic.write_queue_nums) == (2, 3)
        assert topic.attributes == {"message.type": "FIFO"}
        assert await asker.code(create(order=True, attributes="-message.type")) == SUCCESS
        assert ((await shown(asker)).order, (await shown(asker)).attributes) == (True, {})
        await asker.send("T")
        await asker.beat("g", topics={"T": "*"})
        await asker.commit("g", "T", 1)
        assert await asker.code(DeleteTopic(topic="T")) == SUCCESS
        assert await asker.code(TopicConfigOf(topic="T")) == 17
        assert await asker.code(create()) == SUCCESS
        assert await asker.max_offset("T") == 0
        assert await asker.committed("g", "T") is None
        await asker.send("T", b"anew")
        assert await asker.bodies("T") == [b"anew"]
        assert await asker.code(DeleteTopic(topic="nothing")) == SUCCESS

    play(test)


def test_topics_that_cannot_be_are_refused() -> None:
    async def test(asker: Asker) -> None:
        assert await asker.code(create(topic="bad name!")) == 29
        assert await asker.code(create(topic="")) == 29
        assert await asker.code(create(topic="TBW102")) == 29
        assert await asker.code(create(topic_filter_type="OTHER")) == 1
        assert await asker.code(create(attributes="+nope=1")) == 1
        for name in ("", "TBW102", "SCHEDULE_TOPIC_XXXX", "../x", "a/b"):
            assert await asker.code(DeleteTopic(topic=name)) == 29

    play(test)


def test_several_topics_are_made_at_once() -> None:
    async def test(asker: Asker) -> None:
        topics = [
            TopicConfig(topic_name=name, read_queue_nums=1, write_queue_nums=1)
            for name in ("A", "B")
        ]
        body = TopicConfigList(topic_config_list=topics).encode()
        assert await asker.code(CreateTopics(), body) == SUCCESS
        reply = await asker.call(AllTopicConfigs())
        table = TopicTable.decode(reply.body)
        assert {"A", "B", "TBW102"} <= table.topic_config_table.keys()
        assert table.data_version.counter == 2

    play(test)


def test_consumers_of_a_topic_are_those_online_and_those_with_offsets() -> None:
    async def test(asker: Asker) -> None:
        await asker.send("T")
        await asker.beat("online", topics={"T": "*"})
        await asker.beat("away", topics={"U": "*"}, client_id="c")
        await asker.commit("away", "T", 1)
        reply = await asker.call(TopicConsumers(topic="T"))
        assert GroupList.decode(reply.body).group_list == ["away", "online"]

    play(test)


def test_the_brokers_own_topics_are_listed_and_left_alone_by_cleaning() -> None:
    async def test(asker: Asker) -> None:
        await asker.send("T")
        reply = await asker.call(SystemTopicsOfBroker())
        assert "SCHEDULE_TOPIC_XXXX" in TopicList.decode(reply.body).topic_list
        assert await asker.code(CleanUnusedTopics()) == SUCCESS
        assert len(await asker.bodies("T")) == 1

    play(test)


def test_a_topic_for_messages_of_all_types_is_made_only_if_that_is_allowed() -> None:
    async def test(asker: Asker) -> None:
        reply = await asker.call(create(attributes="+message.type=MIXED"))
        assert (reply.code, reply.remark) == (29, "MIXED message type is not supported.")
        assert await asker.code(create(attributes="+message.type=UNSPECIFIED")) == SUCCESS

    async def allowed(asker: Asker) -> None:
        assert await asker.code(create(attributes="+message.type=MIXED")) == SUCCESS

    play(test)
    play(allowed, mixed_message_type=True)


def mapping(epoch: int = 1, broker: str = "broker-a", **changes: object) -> MappingDetail:
    fields = {
        "bname": broker,
        "epoch": epoch,
        "hosted_queues": {
            0: [MappingItem(bname=broker)],
            1: [MappingItem(bname=broker, queue_id=1)],
        },
        "topic": "T",
        "total_queues": 2,
    }
    return MappingDetail(**(fields | changes))  # type: ignore[arg-type]


def static(**changes: object) -> CreateStaticTopic:
    made = {name: getattr(create(), name) for name in CreateTopic.__struct_fields__}
    return CreateStaticTopic(**(made | changes))


def test_a_static_topic_is_made_shown_and_deleted() -> None:
    async def test(asker: Asker) -> None:
        assert await asker.code(static(), mapping().encode()) == SUCCESS
        assert (await shown(asker)).write_queue_nums == 3
        reply = await asker.call(TopicConfigOf(topic="T", lo=True))
        assert MappedTopic.decode(reply.body).mapping_detail == mapping()
        assert b"mappingDetail" not in (await asker.call(TopicConfigOf(topic="T"))).body
        table = TopicTable.decode((await asker.call(AllTopicConfigs())).body)
        assert table.topic_queue_mapping_detail_map == {"T": mapping()}
        assert await asker.code(create(write_queue_nums=1)) == 29
        assert await asker.code(DeleteTopic(topic="T")) == SUCCESS
        assert await asker.code(create()) == SUCCESS
        reply = await asker.call(TopicConfigOf(topic="T", lo=True))
        assert MappedTopic.decode(reply.body).mapping_detail is None

    play(test)


def test_a_static_topic_that_contradicts_itself_is_refused() -> None:
    async def test(asker: Asker) -> None:
        assert await asker.code(static(), mapping(broker="other").encode()) == 1
        assert await asker.code(static(topic="U"), mapping().encode()) == 29
        assert await asker.code(static(write_queue_nums=1), mapping().encode()) == 29
        assert await asker.code(static(topic="TBW102"), mapping(topic="TBW102").encode()) == 29
        assert await asker.code(static(), b"{") == 1
        assert await asker.code(TopicConfigOf(topic="T")) == 17
        assert await asker.code(static(), mapping(epoch=5).encode()) == SUCCESS
        assert await asker.code(static(), mapping(epoch=4).encode()) == 1
        assert await asker.code(static(force=True), mapping(epoch=4).encode()) == SUCCESS

    play(test)
