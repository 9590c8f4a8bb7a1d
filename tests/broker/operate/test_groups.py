"""Operators and consumer groups."""

from __future__ import annotations

from sprocket.protocol.bodies import (
    GroupConfig,
    GroupConfigList,
    GroupForbidden,
    GroupTable,
    SubscriptionBody,
    TopicList,
)
from sprocket.protocol.requests.group import (
    AllGroupConfigs,
    CreateGroup,
    CreateGroups,
    DeleteGroup,
    ForbidGroup,
    GroupConfigOf,
    GroupSubscription,
    GroupTopics,
)
from tests.broker.parts import SUCCESS, Asker, play


def test_a_group_is_made_changed_shown_and_deleted() -> None:
    async def test(asker: Asker) -> None:
        body = GroupConfig(group_name="g", retry_max_times=3).encode()
        assert await asker.code(CreateGroup(), body) == SUCCESS
        reply = await asker.call(GroupConfigOf(group="g"))
        assert GroupConfig.decode(reply.body).retry_max_times == 3
        await asker.send("T")
        await asker.commit("g", "T", 1)
        assert await asker.code(DeleteGroup(group_name="g", clean_offset=True)) == SUCCESS
        known = GroupTable.decode((await asker.call(AllGroupConfigs())).body)
        assert "g" not in known.subscription_group_table
        assert await asker.committed("g", "T") is None
        assert await asker.code(DeleteGroup(group_name="nobody")) == SUCCESS
        assert await asker.code(CreateGroup(), GroupConfig().encode()) == 29
        assert await asker.code(CreateGroup(), b"{") == 1

    play(test)


def test_a_group_that_is_asked_for_is_created_where_unknown_groups_are() -> None:
    """As RocketMQ's broker does: its proxy asks for the group before it lets a consumer in."""

    async def created(asker: Asker) -> None:
        reply = await asker.call(GroupConfigOf(group="new"))
        assert GroupConfig.decode(reply.body).group_name == "new"
        known = GroupTable.decode((await asker.call(AllGroupConfigs())).body)
        assert "new" in known.subscription_group_table
        assert await asker.code(GroupConfigOf(group="no blanks")) == 26

    async def refused(asker: Asker) -> None:
        assert await asker.code(GroupConfigOf(group="new")) == 26

    play(created)
    play(refused, auto_create_groups=False)


def test_several_groups_are_made_at_once_and_listed() -> None:
    async def test(asker: Asker) -> None:
        groups = [GroupConfig(group_name=name) for name in ("g", "h")]
        body = GroupConfigList(group_config_list=groups).encode()
        assert await asker.code(CreateGroups(), body) == SUCCESS
        reply = await asker.call(AllGroupConfigs())
        table = GroupTable.decode(reply.body)
        assert {"g", "h", "TOOLS_CONSUMER"} <= table.subscription_group_table.keys()
        assert table.data_version.counter == 2

    play(test)


def test_a_group_is_kept_from_a_topic_and_let_again() -> None:
    async def test(asker: Asker) -> None:
        for wish, readable in ((None, True), (False, False), (None, False), (True, True)):
            reply = await asker.call(ForbidGroup(group="g", topic="T", readable=wish))
            assert GroupForbidden.decode(reply.body).readable is readable

    play(test)


def test_topics_and_subscription_of_a_group() -> None:
    async def test(asker: Asker) -> None:
        await asker.send("T")
        await asker.beat("g", topics={"T": "a"})
        await asker.commit("g", "T", 1)
        reply = await asker.call(GroupTopics(group="g"))
        topics = TopicList.decode(reply.body)
        assert (topics.topic_list, topics.broker_addr) == (["T"], asker.broker.address)
        reply = await asker.call(GroupSubscription(group="g", topic="T"))
        found = SubscriptionBody.decode(reply.body).subscription_data
        assert found is not None
        assert found.sub_string == "a"
        reply = await asker.call(GroupSubscription(group="nobody", topic="T"))
        assert SubscriptionBody.decode(reply.body).subscription_data is None

    play(test)


def test_attributes_of_a_group_are_checked_and_kept() -> None:
    async def test(asker: Asker) -> None:
        async def put(**attributes: str) -> int:
            named = {f"+{name.replace('_', '.')}": value for name, value in attributes.items()}
            body = GroupConfig(group_name="g", attributes=named).encode()
            return await asker.code(CreateGroup(), body)

        assert await put(priority_factor="30") == SUCCESS
        assert await put() == SUCCESS
        assert await put(priority_factor="101") == 1
        assert await put(nope="1") == 1
        shown = GroupConfig.decode((await asker.call(GroupConfigOf(group="g"))).body)
        assert shown.attributes == {"priority.factor": "30"}

    play(test)
