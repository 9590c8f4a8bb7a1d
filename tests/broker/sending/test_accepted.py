"""What the door accepts can be given back, delayed, committed and become a dead letter."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sprocket.message.properties import (
    OF_BROKERS,
    RESERVED,
    SENT_PROPERTIES_BYTES_MAX,
    encode,
)
from sprocket.protocol.bodies import GroupConfig, TopicConfig
from sprocket.protocol.requests.group import CreateGroup
from sprocket.protocol.requests.send import SendBack, SendMessageV2
from sprocket.protocol.requests.topic import TopicConfigOf
from sprocket.protocol.requests.transaction import COMMIT, EndTransaction
from tests.broker.parts import RETRY, SUCCESS, Asker, play

TOPIC, GROUP = "T" * 127, "g" * 120
RETRY_TOPIC, DEAD_LETTERS = f"%RETRY%{GROUP}", f"%DLQ%{GROUP}"
ILLEGAL = 13


async def offer(asker: Asker, properties: dict[str, str]) -> dict[str, str] | None:
    """Sends a message; the fields of the reply, or None if it is refused for good."""
    header = SendMessageV2(
        producer_group="p", topic=TOPIC, queue_id=0, properties=encode(properties), born_timestamp=1
    )
    reply = await asker.call(header, b"body")
    assert reply.code in (SUCCESS, ILLEGAL, 1), reply.remark  # 1: a delay level that is no number
    return dict(reply.fields) if reply.code == SUCCESS else None


async def arrived(asker: Asker, topic: str, offset: int) -> int:
    """The log offset of a message, once it is there."""
    pulled = await asker.pull(topic, offset, hold_ms=30_000)
    while pulled.code == RETRY:
        pulled = await asker.pull(topic, offset, hold_ms=30_000)
    (message,) = pulled.messages
    assert message.body == b"body"
    return message.log_offset


async def take_through(asker: Asker, properties: dict[str, str], seen: int) -> bool:
    """Whether a message is accepted; then it goes all ways that there are.

    Args:
        seen: how many went that way before.
    """
    fields = await offer(asker, properties)
    if fields is None:
        return False
    if properties.get("TRAN_MSG", "").lower() == "true":
        end = EndTransaction(
            producer_group=properties.get("PGROUP", "p"),
            tran_state_table_offset=int(fields["queueOffset"]),
            commit_log_offset=int(fields["msgId"][-16:], 16),
            commit_or_rollback=COMMIT,
        )
        assert await asker.code(end) == SUCCESS
    at = await arrived(asker, TOPIC, seen)
    for number in range(2):
        back = SendBack(offset=at, group=GROUP, delay_level=1, max_reconsume_times=2)
        assert await asker.code(back) == SUCCESS
        at = await arrived(asker, RETRY_TOPIC, 2 * seen + number)
    assert await asker.code(SendBack(offset=at, group=GROUP, delay_level=-1)) == SUCCESS
    await arrived(asker, DEAD_LETTERS, seen)
    return True


WAYS: list[dict[str, str]] = [
    {},
    {"DELAY": "2"},
    {"TIMER_DELAY_SEC": "4"},
    {"TRAN_MSG": "true", "PGROUP": "p"},
    {"TRAN_MSG": "true", "PGROUP": "p", "DELAY": "1"},
    {"TRAN_MSG": "true", "PGROUP": "p", "TIMER_DELAY_MS": "3000"},
]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: "+".join(way) or "plain")
def test_the_largest_properties_that_are_accepted_go_all_ways(way: dict[str, str]) -> None:
    async def test(asker: Asker) -> None:
        await asker.create(TOPIC)
        await asker.call(CreateGroup(), GroupConfig(group_name=GROUP).encode())
        seen, low, high = 0, 0, SENT_PROPERTIES_BYTES_MAX
        while low < high:  # the largest value that is accepted
            middle = (low + high + 1) // 2
            properties = {**way, "UNIQ_KEY": f"k{middle}", "v": "y" * middle}
            if await take_through(asker, properties, seen):
                low, seen = middle, seen + 1
            else:
                high = middle - 1
        assert low > SENT_PROPERTIES_BYTES_MAX - 200
        assert not await take_through(asker, {**way, "v": "y" * 32_640}, seen)

    play(test, flush_timeout_ms=5000)


@pytest.mark.parametrize(
    "time", [{"TIMER_DELAY_MS": "x"}, {"TIMER_DELIVER_MS": "1e3"}, {"TIMER_DELAY_SEC": "9" * 18}]
)
def test_a_transaction_is_refused_when_it_begins_not_when_it_is_committed(
    time: dict[str, str],
) -> None:
    async def test(asker: Asker) -> None:
        await asker.create(TOPIC)
        half = {"TRAN_MSG": "true", "PGROUP": "p", **time}
        assert await offer(asker, half) is None
        assert await offer(asker, {**half, "DELAY": "2"}) is not None, "a level goes before a time"

    play(test)


values = st.one_of(
    st.sampled_from(["true", "false", "1", "3", "0", "-1", "T+k", "x"]),
    st.text(st.characters(exclude_characters="\x01\x02", exclude_categories=["Cs"]), max_size=30),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.dictionaries(st.sampled_from(sorted(RESERVED)), values, max_size=4), max_size=3))
def test_whatever_a_client_may_set_goes_all_ways(many: list[dict[str, str]]) -> None:
    async def test(asker: Asker) -> None:
        await asker.create(TOPIC)
        seen = 0
        for number, properties in enumerate(many):
            for name in ("TIMER_DELAY_SEC", "TIMER_DELIVER_MS", "TIMER_DELAY_MS"):
                if properties.get(name, "").isdecimal():
                    properties[name] = "3"
            given_key = {**properties, "UNIQ_KEY": f"k{number}"}
            seen += await take_through(asker, given_key, seen)

    play(test)


@pytest.mark.parametrize("name", sorted(OF_BROKERS))
def test_what_a_broker_notes_is_taken_off_what_is_sent(name: str) -> None:
    async def test(asker: Asker) -> None:
        await asker.send("T", **{name: "1", "UNIQ_KEY": "k", "mine": "1"})
        await asker.send("T", UNIQ_KEY="k2", mine="1")
        first, second = (await asker.pull("T")).messages
        assert name not in first.properties
        assert {**first.properties, "UNIQ_KEY": ""} == {**second.properties, "UNIQ_KEY": ""}

    play(test)


def test_a_sender_cannot_skip_its_delay_nor_take_back_what_another_sent() -> None:
    async def test(asker: Asker) -> None:
        await asker.send("T", b"waits", TIMER_DELAY_MS="5000", TIMER_OUT_MS="1", UNIQ_KEY="k")
        assert await asker.bodies("T") == []
        header = SendMessageV2(
            producer_group="p",
            topic="T",
            queue_id=0,
            born_timestamp=1,
            properties=encode({"TIMER_DELAY_MS": "3000", "TIMER_DEL_UNIQKEY": "T+k"}),
        )
        reply = await asker.call(header, b"x")
        assert (reply.code, "TIMER_DEL_UNIQKEY" in (reply.remark or "")) == (ILLEGAL, True)
        await asyncio.sleep(8)
        assert await asker.bodies("T") == [b"waits"]

    play(test)


def test_more_retry_queues_are_queues_of_the_retry_topic() -> None:
    async def test(asker: Asker) -> None:
        await asker.create("T")
        await asker.send("T", b"body")
        await asker.beat("g", topics={"T": "*"})
        config = GroupConfig(group_name="g", retry_queue_nums=4)
        assert await asker.code(CreateGroup(), config.encode()) == SUCCESS
        (message,) = (await asker.pull("T")).messages
        for _ in range(25):
            back = SendBack(offset=message.log_offset, group="g", delay_level=1)
            assert await asker.code(back) == SUCCESS
        topic = TopicConfig.decode((await asker.call(TopicConfigOf(topic="%RETRY%g"))).body)
        assert (topic.read_queue_nums, topic.write_queue_nums) == (4, 4)
        await asyncio.sleep(3)
        counts = [await asker.max_offset("%RETRY%g", number) for number in range(4)]
        assert sum(counts) == 25
        assert all(counts)

    play(test)


@pytest.mark.parametrize(("length", "code"), [(120, SUCCESS), (121, 29), (255, 29)])
def test_a_group_whose_retry_topic_could_not_be_is_not_made(length: int, code: int) -> None:
    async def test(asker: Asker) -> None:
        config = GroupConfig(group_name="g" * length)
        assert await asker.code(CreateGroup(), config.encode()) == code

    play(test)
