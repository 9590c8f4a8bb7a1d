"""Messages with a priority, and topics that ask for keys."""

from __future__ import annotations

import pytest

from sprocket.protocol.requests.send import SendMessageV2
from tests.broker.parts import Asker, play


@pytest.mark.parametrize(("priority", "queue"), [("0", "0"), ("2", "2"), ("3", "3"), ("9", "3")])
def test_a_priority_chooses_the_queue_and_the_last_one_takes_all_above(
    priority: str, queue: str
) -> None:
    async def test(asker: Asker) -> None:
        await asker.create("t", 4, attributes="+message.type=PRIORITY")
        sent = await asker.send("t", queue=1, _SYS_MSG_PRIORITY_=priority)
        assert (sent["queueId"], sent["queueOffset"]) == (queue, "0")
        (message,) = (await asker.pull("t", queue=int(queue))).messages
        assert message.priority == int(priority)

    play(test)


def test_what_is_no_priority_counts_for_nothing() -> None:
    async def test(asker: Asker) -> None:
        await asker.create("t", 4, attributes="+message.type=PRIORITY")
        for text in ("-3", "x", "2147483648"):
            assert (await asker.send("t", queue=1, _SYS_MSG_PRIORITY_=text))["queueId"] == "1"

    play(test)


def test_a_message_of_another_type_has_no_priority() -> None:
    async def test(asker: Asker) -> None:
        await asker.create("t", 4)
        for others in ({"__SHARDINGKEY": "k"}, {"DELAY": "0"}):
            sent = await asker.send("t", queue=1, _SYS_MSG_PRIORITY_="3", **others)
            assert sent["queueId"] == "1"
        for message in (await asker.pull("t", queue=1)).messages:
            assert message.priority is None

    play(test)


def test_a_topic_that_keeps_the_newest_of_each_key_takes_no_message_without_keys() -> None:
    async def test(asker: Asker) -> None:
        await asker.create("t", 1, attributes="+cleanup.policy=COMPACTION")
        bare = SendMessageV2(producer_group="p", topic="t", queue_id=0, properties="A\x01b\x02")
        reply = await asker.call(bare, b"x")
        assert (reply.code, reply.remark) == (13, "Required message key is missing")
        await asker.send("t", KEYS="k")

    play(test)
