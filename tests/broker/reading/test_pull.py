"""Pulling through the door, and waiting for what comes."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from sprocket.protocol.command import Command
from sprocket.protocol.requests.admin import UpdateBrokerConfig
from sprocket.protocol.requests.offset import ResetOffset
from sprocket.protocol.requests.pull import (
    COMMIT_OFFSET,
    SUBSCRIPTION,
    SUSPEND,
    LitePullMessage,
)
from sprocket.protocol.requests.topic import DeleteTopic
from sprocket.testing.disk import FaultyDisk
from tests.broker.parts import (
    MOVED,
    NOT_FOUND,
    RETRY,
    ROOT,
    STORE,
    SUCCESS,
    Asker,
    Pulled,
    another,
    play,
    pull_of,
    settle,
)


async def fill(asker: Asker, count: int, topic: str = "T", size: int = 1, tag: str = "") -> None:
    for number in range(count):
        body = str(number).encode().rjust(size, b"-")
        await asker.send(topic, body, **({"TAGS": tag} if tag else {}))


def test_messages_come_in_order_up_to_the_limits_of_one_answer() -> None:
    async def test(asker: Asker) -> None:
        await fill(asker, 40)
        pulled = await asker.pull("T", 3)
        assert [message.queue_offset for message in pulled.messages] == list(range(3, 35))
        assert (pulled.next_offset, pulled.remark) == (35, "FOUND")
        assert (pulled.fields["minOffset"], pulled.fields["maxOffset"]) == ("0", "40")
        header = pull_of("T")
        header.max_msg_bytes = 500
        few = Pulled(await asker.call(header))
        assert 0 < len(few.messages) < 10

    play(test)


def test_whoever_says_how_many_bytes_it_takes_gets_more_than_32_messages() -> None:
    async def test(asker: Asker) -> None:
        await fill(asker, 90)
        header = pull_of("T")
        header.max_msg_nums, header.max_msg_bytes = 1000, 2**31 - 1
        assert len(Pulled(await asker.call(header)).messages) == 90
        header.max_msg_bytes = None
        assert len(Pulled(await asker.call(header)).messages) == 32

    play(test)


def test_a_message_larger_than_an_answer_comes_alone() -> None:
    async def test(asker: Asker) -> None:
        await fill(asker, 3, size=2000)
        assert len((await asker.pull("T")).messages) == 1

    play(test, pull_bytes_max=1024)


@pytest.mark.parametrize(
    ("offset", "code", "next_offset", "remark"),
    [
        (-1, MOVED, 0, "OFFSET_TOO_SMALL"),
        (5, NOT_FOUND, 5, "OFFSET_OVERFLOW_ONE"),
        (6, MOVED, 5, "OFFSET_OVERFLOW_BADLY"),
        (105, MOVED, 5, "OFFSET_OVERFLOW_BADLY"),
    ],
)
def test_an_offset_outside_the_queue_is_told_where_to_go(
    offset: int, code: int, next_offset: int, remark: str
) -> None:
    async def test(asker: Asker) -> None:
        await fill(asker, 5)
        pulled = await asker.pull("T", offset, hold_ms=100)
        assert (pulled.code, pulled.next_offset, pulled.remark) == (code, next_offset, remark)

    play(test)


def test_an_empty_queue_has_nothing_yet_and_nothing_beyond() -> None:
    async def test(asker: Asker) -> None:
        await asker.create("T")
        pulled = await asker.pull("T")
        assert (pulled.code, pulled.remark) == (NOT_FOUND, "NO_MESSAGE_IN_QUEUE")
        assert (await asker.pull("T", 7, hold_ms=1000)).code == MOVED

    play(test)


def test_tags_choose_at_the_queue_and_what_was_looked_through_can_be_skipped() -> None:
    async def test(asker: Asker) -> None:
        for tag in ("a", "b", "c"):
            await fill(asker, 2, tag=tag)
        found = await asker.pull("T", tags="a || c")
        assert [message.properties["TAGS"] for message in found.messages] == ["a", "a", "c", "c"]
        none = await asker.pull("T", tags="x")
        assert (none.code, none.next_offset, none.remark) == (RETRY, 6, "NO_MATCHED_MESSAGE")

    play(test)


def test_a_held_pull_ends_with_the_message_it_waited_for() -> None:
    async def test(asker: Asker) -> None:
        loop = asyncio.get_running_loop()
        await fill(asker, 2)
        began = loop.time()
        waiting = asyncio.create_task(asker.pull("T", 2, hold_ms=15_000))
        await asyncio.sleep(3)
        assert not waiting.done()
        await asker.send("T", b"at last")
        pulled = await waiting
        assert [message.body for message in pulled.messages] == [b"at last"]
        assert 3 <= loop.time() - began < 3.5

    play(test)


def test_a_held_pull_ends_when_its_message_is_safe_where_senders_wait_for_the_disk() -> None:
    disk = FaultyDisk("slow", sync_seconds=(0.2, 0.2))
    disk.make_directory(ROOT)

    async def test(asker: Asker) -> None:
        loop = asyncio.get_running_loop()
        await asker.send("T", b"0")
        held = asyncio.ensure_future(asker.pull("T", 1, hold_ms=15_000))
        await settle()
        began = loop.time()
        await asker.send("T", b"1", WAIT="false")
        assert loop.time() - began < 0.1
        assert await asker.max_offset("T") == 1
        pulled = await held
        assert [message.body for message in pulled.messages] == [b"1"]
        assert loop.time() - began >= 0.2
        assert pulled.fields["maxOffset"] == "2"

    play(test, disk, store=replace(STORE, flush="SYNC_FLUSH"))


def test_a_held_pull_of_a_new_topic_ends_with_its_first_message() -> None:
    async def test(asker: Asker) -> None:
        await asker.create("T")
        waiting = asyncio.create_task(asker.pull("T", hold_ms=15_000))
        await asyncio.sleep(1)
        await asker.send("T", b"first")
        assert [message.body for message in (await waiting).messages] == [b"first"]

    play(test)


def test_a_held_pull_ends_at_its_time_with_nothing() -> None:
    async def test(asker: Asker) -> None:
        loop = asyncio.get_running_loop()
        await fill(asker, 2)
        began = loop.time()
        pulled = await asker.pull("T", 2, hold_ms=2_000)
        assert (pulled.code, pulled.next_offset) == (NOT_FOUND, 2)
        assert 2 <= loop.time() - began < 2.5

    play(test)


def test_what_does_not_match_wakes_nobody_and_can_be_skipped_at_the_end() -> None:
    async def test(asker: Asker) -> None:
        loop = asyncio.get_running_loop()
        await fill(asker, 1, tag="a")
        began = loop.time()
        waiting = asyncio.create_task(asker.pull("T", 1, hold_ms=5_000, tags="a"))
        for _ in range(3):
            await asyncio.sleep(1)
            await fill(asker, 1, tag="b")
        pulled = await waiting
        assert 5 <= loop.time() - began < 5.5
        assert (pulled.code, pulled.next_offset) == (RETRY, 4)

    play(test)


def test_a_match_after_others_that_do_not_match_ends_the_wait() -> None:
    async def test(asker: Asker) -> None:
        await fill(asker, 1, tag="a")
        waiting = asyncio.create_task(asker.pull("T", 1, hold_ms=5_000, tags="a"))
        await asyncio.sleep(1)
        await fill(asker, 2, tag="b")
        await fill(asker, 1, tag="a")
        pulled = await waiting
        assert [message.queue_offset for message in pulled.messages] == [3]

    play(test)


def test_a_long_scan_that_matches_nothing_goes_on_at_once() -> None:
    async def test(asker: Asker) -> None:
        loop = asyncio.get_running_loop()
        for _ in range(45):
            await _fill_fast(asker, 100, "b")
        await fill(asker, 1, tag="a")
        began = loop.time()
        pulled = await asker.pull("T", tags="a", hold_ms=10_000)
        assert [message.queue_offset for message in pulled.messages] == [4500]
        assert loop.time() - began < 1
        nothing = await asker.pull("T", tags="x")
        assert (nothing.code, nothing.next_offset < 4500) == (RETRY, True)

    play(test)


async def _fill_fast(asker: Asker, count: int, tag: str) -> None:
    await asyncio.gather(*(asker.send("T", TAGS=tag) for _ in range(count)))


def test_without_long_polling_a_pull_waits_a_short_time() -> None:
    async def test(asker: Asker) -> None:
        loop = asyncio.get_running_loop()
        await asker.create("T")
        began = loop.time()
        assert (await asker.pull("T", hold_ms=15_000)).code == NOT_FOUND
        assert 0.7 <= loop.time() - began < 1

    play(test, long_polling=False, short_polling_ms=700)


def test_more_held_pulls_than_allowed_are_refused_as_busy() -> None:
    async def test(asker: Asker) -> None:
        await asker.create("T")
        held = [asyncio.create_task(asker.pull("T", hold_ms=2_000)) for _ in range(2)]
        await settle()
        assert (await asker.pull("T", hold_ms=2_000)).code == 2
        assert [(await each).code for each in held] == [NOT_FOUND, NOT_FOUND]
        assert (await asker.pull("T", hold_ms=10)).code == NOT_FOUND

    play(test, held_pulls_max=2)


def test_a_client_that_goes_takes_its_held_pulls_with_it() -> None:
    async def test(asker: Asker) -> None:
        await asker.create("T")
        async with another(asker) as other:
            waiting = asyncio.create_task(other.pull("T", hold_ms=60_000))
            await settle()
        with pytest.raises(Exception, match="broke"):
            await waiting
        await settle()
        assert (await asker.pull("T", hold_ms=10)).code == NOT_FOUND

    play(test, held_pulls_max=1)


def test_a_reset_group_is_sent_to_its_new_offset_and_old_commits_do_not_count() -> None:
    async def test(asker: Asker) -> None:
        await fill(asker, 9)
        await asker.commit("g", "T", 9)
        waiting = asyncio.create_task(asker.pull("T", 9, hold_ms=15_000))
        await settle()
        reset = ResetOffset(topic="T", group="g", queue_id=0, offset=4)
        assert await asker.code(reset) == SUCCESS
        pulled = await waiting
        assert (pulled.code, pulled.next_offset, pulled.remark) == (MOVED, 4, "OFFSET_RESET")
        assert await asker.committed("g", "T") == 4
        assert len((await asker.pull("T", 4)).messages) == 5

    play(test)


def test_a_commit_under_way_during_a_reset_is_ignored() -> None:
    async def test(asker: Asker) -> None:
        await fill(asker, 9)
        await asker.commit("g", "T", 5)
        assert await asker.code(ResetOffset(topic="T", group="g", timestamp=0)) == SUCCESS
        assert await asker.commit("g", "T", 6) == SUCCESS
        assert await asker.committed("g", "T") == 0
        assert (await asker.pull("T", 6)).remark == "OFFSET_RESET"
        assert await asker.commit("g", "T", 7) == SUCCESS
        assert await asker.committed("g", "T") == 0
        assert (await asker.pull("T", 0)).code == SUCCESS
        assert await asker.commit("g", "T", 1) == SUCCESS
        assert await asker.committed("g", "T") == 1

    play(test)


def test_commits_of_a_connection_that_was_not_told_of_a_reset_are_ignored_by_both_ways() -> None:
    async def test(asker: Asker) -> None:
        await fill(asker, 9)
        await asker.commit("g", "T", 5)
        assert await asker.code(ResetOffset(topic="T", group="g", timestamp=0)) == SUCCESS
        assert (await asker.pull("T", 5)).remark == "OFFSET_RESET"
        assert (await asker.pull("T", 0)).code == SUCCESS
        assert await asker.commit("g", "T", 1) == SUCCESS
        async with another(asker) as other:
            assert await other.commit("g", "T", 6) == SUCCESS
            assert await asker.committed("g", "T") == 1
            header = pull_of("T", 6)
            header.sys_flag, header.commit_offset = header.sys_flag | COMMIT_OFFSET, 6
            moved = Pulled(await other.call(header))
            assert (moved.next_offset, moved.remark) == (1, "OFFSET_RESET")
            assert await asker.committed("g", "T") == 1
            assert (await other.pull("T", 1)).code == SUCCESS
            assert await other.commit("g", "T", 3) == SUCCESS
            assert await asker.committed("g", "T") == 3

    play(test)


def test_a_pull_commits_where_its_flag_says_so() -> None:
    async def test(asker: Asker) -> None:
        await fill(asker, 3)
        header = pull_of("T", 2)
        header.commit_offset = 2
        await asker.call(header)
        assert await asker.committed("g", "T") is None
        header.sys_flag |= COMMIT_OFFSET
        await asker.call(header)
        assert await asker.committed("g", "T") == 2

    play(test)


def test_the_rules_are_looked_at_again_when_a_held_pull_wakes() -> None:
    async def test(asker: Asker) -> None:
        await asker.create("T")
        waiting = asyncio.create_task(asker.pull("T", hold_ms=15_000))
        await settle()
        assert await asker.code(UpdateBrokerConfig(), b"brokerPermission=2\n") == SUCCESS
        await asker.send("T")
        assert (await waiting).code == 16

    play(test)


def test_a_deleted_topic_ends_held_pulls_at_their_time_at_the_latest() -> None:
    async def test(asker: Asker) -> None:
        await asker.create("T")
        waiting = asyncio.create_task(asker.pull("T", hold_ms=2_000))
        await settle()
        assert await asker.code(DeleteTopic(topic="T")) == SUCCESS
        assert (await waiting).code == 17

    play(test)


def test_lite_pull_does_the_same_unless_it_is_off() -> None:
    async def ask(asker: Asker) -> Command:
        return await asker.call(
            LitePullMessage(
                consumer_group="g",
                topic="T",
                queue_id=0,
                queue_offset=0,
                max_msg_nums=32,
                sys_flag=SUBSCRIPTION | SUSPEND,
                subscription="*",
            )
        )

    async def on(asker: Asker) -> None:
        await fill(asker, 2)
        assert len(Pulled(await ask(asker)).messages) == 2

    async def off(asker: Asker) -> None:
        await fill(asker, 2)
        reply = await ask(asker)
        assert (reply.code, reply.fields["forbiddenType"]) == (16, "1")

    play(on)
    play(off, lite_pull=False)
