"""What operators ask about lite topics, in the words of RocketMQ's replies."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from sprocket.protocol.command import Header
from sprocket.protocol.requests.lite import (
    BrokerLiteInfo,
    LiteClientInfo,
    LiteGroupInfo,
    LiteTopicInfo,
    ParentTopicInfo,
    PopLite,
    TriggerLiteDispatch,
)
from tests.broker.lite.lites import (
    GROUP,
    PARENT,
    ack,
    begin,
    bind,
    change,
    pop,
    send,
    subscribe,
)
from tests.broker.parts import SUCCESS, Asker, play, settle

TOPIC_GONE, GROUP_GONE, INVALID, NO_PERMISSION = 17, 26, 29, 16


async def asked(asker: Asker, header: Header) -> dict[str, Any]:
    reply = await asker.call(header)
    assert reply.code == SUCCESS, reply.remark
    found: dict[str, Any] = json.loads(bytes(reply.body))
    return found


async def filled(asker: Asker) -> None:
    await begin(asker, minutes=60)
    await bind(asker, "all", lite_sub_wildcard="true")
    await subscribe(asker, "a", "b")
    await change(asker, "COMPLETE_ADD", client="w", group="all")
    await send(asker, "a", b"1", b"2", b"3")
    await send(asker, "b", b"4")
    await ack(asker, await pop(asker, count=1))
    await pop(asker)


def test_a_broker_counts_all() -> None:
    async def test(asker: Asker) -> None:
        await filled(asker)
        assert await asked(asker, BrokerLiteInfo()) == {
            "cqTableSize": 2, "currentLmqNum": 2, "eventMapSize": 2, "liteSubscriptionCount": 3,
            "maxLmqNum": 1_000_000, "offsetTableSize": 2, "orderInfoCount": 2,
            "storeType": "default", "topicMeta": {PARENT: 60},
            "groupMeta": {PARENT: [GROUP, "all"]},
        }  # fmt: skip

    play(test)


def test_a_parent_topic_has_its_lite_topics_and_groups() -> None:
    async def test(asker: Asker) -> None:
        await filled(asker)
        assert await asked(asker, ParentTopicInfo(topic=PARENT)) == {
            "topic": PARENT, "ttl": 60, "lmqNum": 2, "liteTopicCount": 2, "groups": [GROUP, "all"],
        }  # fmt: skip
        assert await asker.code(ParentTopicInfo(topic="no")) == TOPIC_GONE
        await asker.create("other")
        assert await asker.code(ParentTopicInfo(topic="other")) == INVALID

    play(test)


def test_a_lite_topic_has_offsets_and_subscribers() -> None:
    async def test(asker: Asker) -> None:
        await filled(asker)
        found = await asked(asker, LiteTopicInfo(parent_topic=PARENT, lite_topic="a"))
        times = found["topicOffset"].pop("lastUpdateTimestamp")
        assert times > 0
        assert found == {
            "parentTopic": PARENT, "liteTopic": "a", "shardingToBroker": True,
            "topicOffset": {"minOffset": 0, "maxOffset": 3},
            "subscriber": [
                {"clientId": "c", "group": GROUP}, {"clientId": "*", "group": "all"},
            ],
        }  # fmt: skip
        unknown = await asked(asker, LiteTopicInfo(parent_topic=PARENT, lite_topic="z"))
        assert unknown["topicOffset"] == {
            "minOffset": 0, "maxOffset": 0, "lastUpdateTimestamp": 0,
        }  # fmt: skip

    play(test)


def test_a_client_has_its_lite_topics() -> None:
    async def test(asker: Asker) -> None:
        await filled(asker)
        header = LiteClientInfo(parent_topic=PARENT, group=GROUP, client_id="c")
        found = await asked(asker, header)
        assert found.pop("lastAccessTime") > 0
        assert found == {
            "parentTopic": PARENT, "group": GROUP, "clientId": "c", "liteTopicCount": 2,
            "lastConsumeTime": 0, "liteTopicSet": [f"%LMQ%${PARENT}$a", f"%LMQ%${PARENT}$b"],
        }  # fmt: skip
        header.max_count = 1
        assert len((await asked(asker, header))["liteTopicSet"]) == 1
        header.client_id = "unknown"
        assert (await asked(asker, header))["liteTopicCount"] == -1
        header.group = "none"
        assert await asker.code(header) == GROUP_GONE
        header.group = "TOOLS_CONSUMER"
        assert await asker.code(header) == INVALID

    play(test)


def test_a_group_has_its_lag() -> None:
    async def test(asker: Asker) -> None:
        await filled(asker)
        found = await asked(asker, LiteGroupInfo(group=GROUP, top_k=1))
        first = found["lagCountTopK"][0]
        assert first["earliestUnconsumedTimestamp"] == found["earliestUnconsumedTimestamp"] > 0
        assert (first["liteTopic"], first["lagCount"]) == ("a", 2)
        assert (len(found["lagCountTopK"]), len(found["lagTimestampTopK"])) == (1, 1)
        assert found["totalLagCount"] == 3
        one = await asked(asker, LiteGroupInfo(group=GROUP, lite_topic="a"))
        assert one["totalLagCount"] == 2
        assert one["liteTopicOffsetWrapper"]["brokerOffset"] == 3
        assert one["liteTopicOffsetWrapper"]["consumerOffset"] == 1
        none = await asked(asker, LiteGroupInfo(group=GROUP, lite_topic="z"))
        assert none["totalLagCount"] == -1
        assert await asker.code(LiteGroupInfo(group="none")) == GROUP_GONE
        assert await asker.code(LiteGroupInfo(group="TOOLS_CONSUMER")) == INVALID

    play(test)


def test_a_new_look_finds_nothing_that_was_given_out() -> None:
    async def test(asker: Asker) -> None:
        await filled(asker)
        assert await asker.code(TriggerLiteDispatch(group=GROUP)) == SUCCESS
        assert await asker.code(TriggerLiteDispatch(group=GROUP, client_id="c")) == SUCCESS
        await settle()
        assert (await pop(asker)).bodies == []
        waiting = asyncio.create_task(pop(asker, hold_ms=30_000))
        await asyncio.sleep(9.8)
        assert not waiting.done()
        assert (await waiting).bodies == [b"2", b"3", b"4"]
        assert await asker.code(TriggerLiteDispatch(group="none")) == GROUP_GONE

    play(test)


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"max_msg_num": 0}, INVALID), ({"max_msg_num": 33}, INVALID),
        ({"topic": "no"}, TOPIC_GONE), ({"topic": "other"}, INVALID),
        ({"consumer_group": "TOOLS_CONSUMER"}, INVALID), ({"invisible_time": 0}, INVALID),
        ({"topic": "shut"}, NO_PERMISSION), ({"attempt_id": "x" * 300}, INVALID),
    ],
)  # fmt: skip
def test_a_pop_that_is_not_allowed_is_refused(changes: dict[str, Any], code: int) -> None:
    async def test(asker: Asker) -> None:
        await begin(asker)
        await asker.create("other")
        await asker.create("shut", permission=2, attributes="+message.type=LITE")
        usual = {
            "client_id": "c", "consumer_group": GROUP, "topic": PARENT, "max_msg_num": 1,
            "invisible_time": 1000, "poll_time": 0, "born_time": 0,
        }  # fmt: skip
        assert await asker.code(PopLite(**{**usual, **changes})) == code

    play(test)
