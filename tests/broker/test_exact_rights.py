"""Users with the rights to exactly one thing, at static topics and lite topics of a closed broker.

Each row is a request, and the least rights with which it passes: with these it does, and without
any one of them it does not, though the user may do everything with other topics and groups.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple

import pytest

from sprocket.auth.policies import PolicyEntry, UserPolicies
from sprocket.clientcore.static_plans import creation
from sprocket.protocol.bodies.lite import LiteSubscriptionBody, LiteSubscriptionEntry
from sprocket.protocol.command import Header
from sprocket.protocol.requests.lite import (
    BrokerLiteInfo,
    ChangeLiteSubscription,
    LiteClientInfo,
    LiteGroupInfo,
    LiteTopicInfo,
    ParentTopicInfo,
    PopLite,
    TriggerLiteDispatch,
)
from sprocket.protocol.requests.offset import (
    EarliestTime,
    MaxOffset,
    MinOffset,
    QueryOffset,
    SearchOffset,
    UpdateOffset,
)
from sprocket.protocol.requests.pop import AckMessage, ChangeInvisible
from sprocket.protocol.requests.send import SendMessageV2
from sprocket.protocol.requests.topic import (
    CreateStaticTopic,
    DeleteTopic,
    TopicConfigOf,
    TopicStats,
)
from tests.broker.accounts import REFUSED, entry, make_user, play_closed
from tests.broker.lite import lites
from tests.broker.lite.lites import GROUP, PARENT
from tests.broker.parts import SUCCESS, Asker, another, pull_of

STATIC = "fixed"
#: Of a user who may do everything with all topics and groups but those of the test.
ELSEWHERE = [
    entry("Topic:*", "All"), entry("Group:*", "All"),
    *(PolicyEntry.of(f"{kind}:{name}", ["All"], "Deny")
      for kind, name in (("Topic", PARENT), ("Topic", STATIC), ("Group", GROUP))),
]  # fmt: skip


class Row(NamedTuple):
    """A request, and what it needs; one right of several may be enough for a part of it."""

    name: str
    header: Header
    needs: tuple[tuple[str, ...], ...]
    body: bytes = b""


def subscription(*pairs: tuple[str, str], action: str = "PARTIAL_ADD") -> bytes:
    return LiteSubscriptionBody(
        subscription_set=[
            LiteSubscriptionEntry(
                action=action,
                client_id=f"c-{group}",
                group=group,
                topic=topic,
                lite_topic_set=["x"],
            )
            for group, topic in pairs
        ]
    ).encode()


def static_topic() -> tuple[CreateStaticTopic, bytes]:
    plan = creation(STATIC, 2, ["broker-a"], {}, now_ms=1_700_000_000_000)
    mapped = plan.topics["broker-a"]
    assert mapped.mapping_detail is not None
    header = CreateStaticTopic(
        topic=STATIC, default_topic="TBW102", read_queue_nums=mapped.read_queue_nums,
        write_queue_nums=mapped.write_queue_nums, perm=6, topic_filter_type="SINGLE_TAG",
    )  # fmt: skip
    return header, mapped.mapping_detail.encode()


def send(topic: str, **properties: str) -> SendMessageV2:
    text = "".join(f"{name}\x01{value}\x02" for name, value in properties.items())
    return SendMessageV2(
        producer_group="p", topic=topic, queue_id=0, properties=text, born_timestamp=1
    )


def one(resource: str, *actions: str) -> tuple[str, ...]:
    return (resource, *actions)


LITE_TOPIC, LITE_GROUP, CLUSTER = f"Topic:{PARENT}", f"Group:{GROUP}", "Cluster:DefaultCluster"
STATIC_TOPIC = f"Topic:{STATIC}"
HANDLE = "0 1700000000000 60000 999 0 broker-a 0 0"
CREATE, CREATE_BODY = static_topic()
LITE_ROWS = [
    Row("send", send(PARENT, __LITE_TOPIC="x"), (one(LITE_TOPIC, "Pub"),)),
    Row(
        "pop",
        PopLite(
            client_id="c", consumer_group=GROUP, topic=PARENT, max_msg_num=1, invisible_time=10_000,
            poll_time=0, born_time=0,
        ),
        (one(LITE_TOPIC, "Sub"), one(LITE_GROUP, "Sub")),
    ),
    Row(
        "acknowledge",
        AckMessage(
            consumer_group=GROUP, topic=PARENT, queue_id=0, extra_info=HANDLE, offset=0,
            lite_topic="x",
        ),
        (one(LITE_TOPIC, "Sub"), one(LITE_GROUP, "Sub")),
    ),
    Row(
        "hide",
        ChangeInvisible(
            consumer_group=GROUP, topic=PARENT, queue_id=0, extra_info=HANDLE, offset=0,
            invisible_time=10_000, lite_topic="x",
        ),
        (one(LITE_TOPIC, "Sub"), one(LITE_GROUP, "Sub")),
    ),
    Row(
        "subscribe", ChangeLiteSubscription(),
        (one(LITE_TOPIC, "Sub"), one(LITE_GROUP, "Sub")), subscription((GROUP, PARENT)),
    ),
    Row(
        "subscribe others too", ChangeLiteSubscription(),
        (one(LITE_TOPIC, "Sub"), one(LITE_GROUP, "Sub")),
        subscription(("other", "other"), (GROUP, PARENT)),
    ),
    Row("figures", BrokerLiteInfo(), (one(CLUSTER, "Get"),)),
    Row("parent", ParentTopicInfo(topic=PARENT), (one(LITE_TOPIC, "Get"),)),
    Row("lite", LiteTopicInfo(parent_topic=PARENT, lite_topic="x"), (one(LITE_TOPIC, "Get"),)),
    Row(
        "client", LiteClientInfo(parent_topic=PARENT, group=GROUP, client_id="c"),
        (one(LITE_TOPIC, "Get"), one(LITE_GROUP, "Get")),
    ),
    Row("group", LiteGroupInfo(group=GROUP), (one(LITE_GROUP, "Get"),)),
    Row("look again", TriggerLiteDispatch(group=GROUP), (one(LITE_GROUP, "Update"),)),
]  # fmt: skip
STATIC_ROWS = [
    Row("create", CREATE, (one(STATIC_TOPIC, "Create"),), CREATE_BODY),
    Row("send", send(STATIC), (one(STATIC_TOPIC, "Pub"),)),
    Row("pull", pull_of(STATIC), (one(STATIC_TOPIC, "Sub"), one(LITE_GROUP, "Sub"))),
    *(
        Row(type(header).__name__, header, (one(STATIC_TOPIC, "Sub", "Get"),))
        for header in (
            MaxOffset(topic=STATIC, queue_id=0), MinOffset(topic=STATIC, queue_id=0),
            EarliestTime(topic=STATIC, queue_id=0),
            SearchOffset(topic=STATIC, queue_id=0, timestamp=0),
        )
    ),
    Row(
        "position", QueryOffset(consumer_group=GROUP, topic=STATIC, queue_id=0),
        (one(STATIC_TOPIC, "Sub", "Get"), one(LITE_GROUP, "Sub", "Get")),
    ),
    Row(
        "commit", UpdateOffset(consumer_group=GROUP, topic=STATIC, queue_id=0, commit_offset=0),
        (one(STATIC_TOPIC, "Sub", "Update"), one(LITE_GROUP, "Sub", "Update")),
    ),
    Row("mapping", TopicConfigOf(topic=STATIC, lo=True), (one(STATIC_TOPIC, "Get"),)),
    Row("offsets", TopicStats(topic=STATIC, lo=True), (one(STATIC_TOPIC, "Get"),)),
    Row("delete", DeleteTopic(topic=STATIC), (one(STATIC_TOPIC, "Delete"),)),
]  # fmt: skip


async def refused(asker: Asker, row: Row) -> bool:
    """Whether the guard refuses it; what the broker says otherwise is no matter here."""
    reply = await asker.call(row.header, row.body)
    return reply.code == REFUSED and "no permission to access" in (reply.remark or "")


@pytest.mark.parametrize("rows", [LITE_ROWS, STATIC_ROWS], ids=["lite", "static"])
def test_each_request_passes_with_exactly_its_rights(rows: list[Row]) -> None:
    async def test(nobody: Asker, root: Asker) -> None:
        await lites.begin(root)
        assert await root.code(CREATE, CREATE_BODY) == SUCCESS
        policies = nobody.broker._parts.tables.accounts.policies
        ann = await make_user(root, "ann")
        async with another(nobody, ann) as asker:
            for row in rows:
                for needed in row.needs:
                    rest = [
                        entry(resource, action)
                        for resource, *actions in row.needs
                        for action in actions
                        if resource != needed[0]
                    ]
                    policies["ann"] = UserPolicies([*ELSEWHERE, *rest])
                    assert await refused(asker, row), (row.name, needed)
                    for action in needed[1:]:
                        policies["ann"] = UserPolicies([*rest, entry(needed[0], action)])
                        is_refused = await refused(asker, row)
                        if row.name != "subscribe others too":
                            assert not is_refused, (row.name, needed[0], action)

    play_closed(test)


Story = Callable[[Asker, Asker, Asker], Awaitable[None]]


def play_users(story: Story) -> None:
    """A story of two users: one of the group, and one who may use another group and topic."""

    async def test(nobody: Asker, root: Asker) -> None:
        await lites.begin(root)
        await root.create("mine", 2, attributes="+message.type=LITE")
        await lites.bind(root, "mine", lite_bind_topic="mine")
        policies = nobody.broker._parts.tables.accounts.policies
        ann, eve = await make_user(root, "ann"), await make_user(root, "eve")
        policies["ann"] = UserPolicies([entry(LITE_TOPIC, "Pub,Sub,Get"), entry(LITE_GROUP, "All")])
        policies["eve"] = UserPolicies([entry("Topic:mine", "All"), entry("Group:mine", "All")])
        async with another(nobody, ann) as owner, another(nobody, eve) as other:
            await story(owner, other, root)

    play_closed(test)


def as_others(action: str, client: str) -> bytes:
    entry = LiteSubscriptionEntry(
        action=action, client_id=client, group="mine", topic="mine", lite_topic_set=["x"]
    )
    return LiteSubscriptionBody(subscription_set=[entry]).encode()


def test_a_user_of_another_group_cannot_end_or_take_over_the_subscription_of_a_client() -> None:
    async def story(owner: Asker, other: Asker, root: Asker) -> None:
        await lites.subscribe(owner, "x", client="c")
        for action in ("COMPLETE_REMOVE", "PARTIAL_REMOVE", "PARTIAL_ADD", "COMPLETE_ADD"):
            code = await other.code(ChangeLiteSubscription(), as_others(action, "c"))
            assert code == REFUSED, action
        await lites.send(owner, "x", b"for the owner")
        assert (await lites.pop(owner, client="c")).bodies == [b"for the owner"]
        assert await other.code(ChangeLiteSubscription(), as_others("PARTIAL_ADD", "d")) == SUCCESS

    play_users(story)


def test_what_a_client_of_another_group_subscribes_is_not_shown() -> None:
    async def story(owner: Asker, other: Asker, root: Asker) -> None:
        await lites.subscribe(owner, "private", client="c")
        asked = LiteClientInfo(parent_topic="mine", group="mine", client_id="c")
        assert b"private" not in (await other.call(asked)).body
        asked = LiteClientInfo(parent_topic=PARENT, group=GROUP, client_id="c")
        assert b"private" in (await owner.call(asked)).body

    play_users(story)


def test_a_group_pops_only_from_the_parent_topic_that_it_is_bound_to() -> None:
    async def story(owner: Asker, other: Asker, root: Asker) -> None:
        await lites.subscribe(owner, "x", client="c")
        await lites.send(owner, "x", b"for the owner")
        for topic, group in (("mine", GROUP), (PARENT, "mine"), ("mine", "mine")):
            asked = PopLite(
                client_id="c", consumer_group=group, topic=topic, max_msg_num=1,
                invisible_time=10_000, poll_time=0, born_time=0,
            )  # fmt: skip
            reply = await other.call(asked)
            assert (reply.code, reply.body) != (SUCCESS, b"")
            assert b"for the owner" not in bytes(reply.body)

    play_users(story)
