"""Quotas at a broker: who is over a limit is refused or waits, and nobody else notices."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from sprocket.base.errors import SprocketError
from sprocket.protocol.bodies import KvTable
from sprocket.protocol.codes import ResponseCode
from sprocket.protocol.command import Command, Header
from sprocket.protocol.requests.admin import BrokerState, UpdateBrokerConfig
from sprocket.protocol.requests.pop import PopMessage
from sprocket.protocol.requests.send import SendMessageV2
from sprocket.protocol.signing import Signer
from tests.broker.accounts import allow, make_user, play_closed
from tests.broker.parts import SUCCESS, Asker, Pulled, another, play, pull_of, settle

BUSY = ResponseCode.SYSTEM_BUSY


def send_of(topic: str = "t", queue: int = 0) -> SendMessageV2:
    return SendMessageV2(producer_group="p", topic=topic, queue_id=queue, born_timestamp=1)


async def send_many(asker: Asker, count: int, body: bytes = b"x", topic: str = "t") -> list[int]:
    """The codes of the replies to sends that leave together."""
    replies = await asyncio.gather(*(asker.call(send_of(topic), body) for _ in range(count)))
    return [reply.code for reply in replies]


async def change(asker: Asker, line: str) -> int:
    """Has the broker change a setting; the code of its reply."""
    return await asker.code(UpdateBrokerConfig(), line.encode())


@asynccontextmanager
async def held(asker: Asker, *headers: Header) -> AsyncIterator[list[asyncio.Task[Command]]]:
    """Requests that wait at the broker; they are given up in the end."""
    tasks = [asyncio.create_task(asker.call(header)) for header in headers]
    await settle()
    try:
        yield tasks
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def figures(asker: Asker) -> dict[str, str]:
    """The broker's figures about quotas."""
    reply = await asker.call(BrokerState())
    table = KvTable.decode(reply.body).table
    return {key: value for key, value in table.items() if key.startswith("quota")}


def test_sends_above_a_rate_are_refused_as_busy_and_the_others_are_all_there() -> None:
    async def test(asker: Asker) -> None:
        await asker.create("t")
        codes = await send_many(asker, 100)
        assert codes == [SUCCESS] * 18 + [BUSY] * 82  # two are for those that took nothing yet
        assert await asker.max_offset("t") == 18
        refused = await asker.call(send_of(), b"x")
        assert refused.remark is not None
        assert refused.remark.startswith("[TIMEOUT_CLEAN_QUEUE]broker busy")
        assert "topic t is over its limit of 10 requests a second" in refused.remark
        await asyncio.sleep(1.0)
        assert await send_many(asker, 13) == [SUCCESS] * 10 + [BUSY] * 3
        assert await asker.max_offset("t") == 28
        assert (await figures(asker))["quotaRefused.topic.requests"] == "86"

    play(test, quotas=("topic t requests=10/20",))


def test_without_rules_nothing_is_limited_and_they_hold_as_soon_as_they_are_set() -> None:
    async def test(asker: Asker) -> None:
        await asker.create("t")
        assert await send_many(asker, 100) == [SUCCESS] * 100
        assert await change(asker, "broker.quotas=topic t requests=5") == SUCCESS
        assert sorted(await send_many(asker, 100)) == [SUCCESS] * 5 + [BUSY] * 95
        rules = "topic t requests=none; client x requests=1"
        assert await change(asker, f"broker.quotas={rules}") == SUCCESS
        assert await send_many(asker, 100) == [SUCCESS] * 100
        assert await change(asker, "broker.quotas=") == SUCCESS
        assert await send_many(asker, 100) == [SUCCESS] * 100
        assert await change(asker, "broker.quotas=topic t requests=-1") != SUCCESS

    play(test)


def test_a_client_over_its_limit_does_not_cost_another_one_anything() -> None:
    async def test(asker: Asker) -> None:
        await asker.create("t")
        await asker.beat(producer="p", client_id="noisy")
        async with another(asker) as other:
            await other.beat(producer="p", client_id="quiet")
            flood = asyncio.gather(*(send_many(asker, 50) for _ in range(4)))
            assert await send_many(other, 10) == [SUCCESS] * 10
            codes = [code for each in await flood for code in each]
            assert codes.count(SUCCESS) == 30
            await asyncio.sleep(1.0)
            assert await asker.max_offset("t") == 40

    play(test, quotas=("client * requests=30",))


def test_a_topic_s_limit_is_shared_fairly_by_its_clients() -> None:
    async def test(asker: Asker) -> None:
        await asker.create("t")
        passed = {"noisy": 0, "quiet": 0}
        async with another(asker) as other:
            await asker.beat(producer="p", client_id="noisy")
            await other.beat(producer="p", client_id="quiet")
            for _ in range(100):
                passed["noisy"] += (await send_many(asker, 20)).count(SUCCESS)
                passed["quiet"] += (await send_many(other, 1)).count(SUCCESS)
                await asyncio.sleep(0.1)
        assert passed["quiet"] >= 99
        assert 950 <= sum(passed.values()) <= 1_130

    play(test, quotas=("topic t requests=100",))


def test_bytes_are_limited_too_and_a_message_above_a_burst_passes_after_a_pause() -> None:
    async def test(asker: Asker) -> None:
        await asker.create("t")
        assert await send_many(asker, 20, b"x" * 1024) == [SUCCESS] * 10 + [BUSY] * 10
        await asyncio.sleep(1.1)
        assert await send_many(asker, 2, b"x" * 30_720) == [SUCCESS, BUSY]
        await asyncio.sleep(2.9)  # it owes two seconds, and one more for a full burst
        assert await send_many(asker, 1, b"x" * 30_720) == [BUSY]
        await asyncio.sleep(0.2)
        assert await send_many(asker, 1, b"x" * 30_720) == [SUCCESS]

    play(test, quotas=("client * bytes_in=10K",))


def test_pulls_above_a_rate_wait_and_are_answered_in_full() -> None:
    async def test(asker: Asker) -> None:
        await asker.create("t")
        for number in range(3):
            await asker.send("t", b"%d" % number)
        loop = asyncio.get_running_loop()
        began = loop.time()
        pulls = (asker.pull("t", hold_ms=20_000) for _ in range(30))
        pulled = await asyncio.gather(*pulls)
        assert [each.code for each in pulled] == [SUCCESS] * 30
        assert all(len(each.messages) == 3 for each in pulled)
        assert loop.time() - began == pytest.approx(2.0, abs=0.1)
        assert (await figures(asker))["quotaDelayed.group.requests"] == "20"

    play(test, quotas=("group g requests=10",))


def test_a_pull_that_would_wait_longer_than_its_sender_is_refused() -> None:
    async def test(asker: Asker) -> None:
        await asker.create("t")
        await asker.send("t")
        pulls = (asker.call(pull_of("t", hold_ms=3_000)) for _ in range(50))
        codes = [reply.code for reply in await asyncio.gather(*pulls)]
        assert codes.count(SUCCESS) == pytest.approx(40, abs=2)
        assert set(codes) == {SUCCESS, BUSY}
        assert set(codes[:35]) == {SUCCESS}  # first come, first served

    play(test, quotas=("group g requests=10",))


def test_what_goes_out_is_limited_by_waiting() -> None:
    async def test(asker: Asker) -> None:
        await asker.create("t")
        for _ in range(10):
            await asker.send("t", b"x" * 10_000)
        loop = asyncio.get_running_loop()
        began, out = loop.time(), 0
        for offset in [*range(10)] * 3:
            pulled = await asker.pull("t", offset, hold_ms=20_000)
            assert pulled.code == SUCCESS
            out += sum(len(each.body) for each in pulled.messages)
        took = loop.time() - began
        assert out / 100_000 - 1.5 <= took <= out / 100_000 + 2

    play(test, quotas=("topic t bytes_out=100K",), pull_count_max=5)


def test_a_pull_that_was_delayed_is_held_for_the_rest_of_its_time_only() -> None:
    async def test(asker: Asker) -> None:
        await asker.create("t")
        loop = asyncio.get_running_loop()
        assert (await asker.pull("t")).code != SUCCESS
        began = loop.time()
        pulled = await asker.pull("t", hold_ms=10_000)  # it waits 2 s for its turn
        assert pulled.code not in (SUCCESS, BUSY)
        assert loop.time() - began == pytest.approx(10.0, abs=0.1)

    play(test, quotas=("group g requests=1/1",))


def test_a_send_wakes_a_pull_although_others_wait_for_their_limit() -> None:
    async def test(asker: Asker) -> None:
        await asker.create("t")
        await asker.create("u")
        others = [pull_of("u", hold_ms=20_000) for _ in range(5)]
        async with held(asker, pull_of("t", hold_ms=20_000)) as (first,), held(asker, *others):
            await asker.send("t", b"now")
            assert [each.body for each in Pulled(await first).messages] == [b"now"]

    play(test, quotas=("group g requests=1/1",))


def pop_of(group: str, hold_ms: int = 0) -> PopMessage:
    return PopMessage(
        consumer_group=group, topic="t", queue_id=-1, max_msg_nums=1, invisible_time=10_000,
        poll_time=hold_ms, born_time=0, init_mode=0,
    )  # fmt: skip


def test_so_many_pulls_and_pops_may_wait_and_no_more() -> None:
    async def test(asker: Asker) -> None:
        await asker.create("t", queues=4)
        pulls = [pull_of("t", hold_ms=60_000, queue=queue) for queue in range(3)]
        async with held(asker, *pulls) as tasks:
            assert await asker.code(pull_of("t", hold_ms=60_000, queue=3)) == BUSY
            assert await asker.code(pop_of("g", 10_000)) == BUSY
            await asker.send("t", queue=1)
            assert (await tasks[1]).code == SUCCESS
            assert (await asker.pull("t", queue=1)).code == SUCCESS
            assert (await figures(asker))["quotaRefused.group.held"] == "2"

    play(test, quotas=("group g held=3",))


def test_those_that_hang_up_hold_nothing_any_more() -> None:
    async def test(asker: Asker) -> None:
        await asker.create("t")
        pulls = [pull_of("t", hold_ms=60_000)] * 3
        for _ in range(2):
            async with another(asker) as other, held(other, *pulls):
                assert await asker.code(pulls[0]) == BUSY
            await settle()

    play(test, quotas=("topic t held=3",))


def test_a_client_that_floods_keeps_its_place_and_its_offsets() -> None:
    async def test(asker: Asker) -> None:
        await asker.create("t")
        for _ in range(20):
            await send_many(asker, 50)
            await asker.beat("g", topics={"t": "*"})
            assert await asker.commit("g", "t", 1) == SUCCESS
            await asyncio.sleep(0.5)
        assert await asker.committed("g", "t") == 1

    play(test, quotas=("client * requests=20", "ip * requests=30"))


def test_so_many_topics_and_groups_may_be_made_in_a_time() -> None:
    async def test(asker: Asker) -> None:
        made = [(await send_many(asker, 1, topic=f"t{number}"))[0] for number in range(6)]
        assert made == [SUCCESS] * 3 + [BUSY] * 3
        assert (await send_many(asker, 1, topic="t0")) == [SUCCESS]
        await asker.beat("g1", topics={"t0": "*"})
        await asker.beat("g2", topics={"t0": "*"})
        await asker.beat("g1", topics={"t0": "*"})
        with pytest.raises(AssertionError, match="group"):
            await asker.beat("g3", topics={"t0": "*"})
        await asyncio.sleep(20 * 60)
        assert await send_many(asker, 1, topic="t7") == [SUCCESS]
        assert await send_many(asker, 1, topic="t8") == [BUSY]

    play(test, quotas=("ip * new_topics=3 new_groups=2",))


def test_groups_that_pops_and_long_heartbeats_make_count_too() -> None:
    async def test(asker: Asker) -> None:
        await asker.create("t")
        codes = [await asker.code(pop_of(f"g{number}")) for number in range(4)]
        assert codes[2:] == [BUSY, BUSY]
        assert BUSY not in codes[:2]

    play(test, quotas=("client * new_groups=2",))


def test_an_operator_can_always_see_and_change_the_limits() -> None:
    async def test(asker: Asker) -> None:
        await asker.create("t")
        await send_many(asker, 50)
        assert await figures(asker)
        assert await change(asker, "broker.quotas=") == SUCCESS
        assert await send_many(asker, 50) == [SUCCESS] * 50

    play(test, quotas=("ip * requests=1/3",))


def test_an_address_has_so_many_connections_and_further_ones_are_closed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def test(asker: Asker) -> None:
        await asker.create("t")
        async with another(asker) as second:
            assert await send_many(second, 1) == [SUCCESS]
            async with another(asker) as third:
                with pytest.raises(SprocketError):
                    await third.call(send_of(), b"x", seconds=2.0)
            assert (await figures(asker))["quotaRefused.ip.connections"] >= "1"
        await settle()
        async with another(asker) as fourth:
            assert await send_many(fourth, 1) == [SUCCESS]

    caplog.set_level(logging.WARNING)
    play(test, quotas=("ip * connections=2",))
    assert any("2 connections, its limit" in each.message for each in caplog.records)


def test_a_client_has_so_many_connections() -> None:
    async def test(asker: Asker) -> None:
        await asker.create("t")
        await asker.beat(producer="p", client_id="c")
        assert await send_many(asker, 1) == [SUCCESS]
        async with another(asker) as second:
            await second.beat(producer="p", client_id="c")
            assert await send_many(second, 1) == [BUSY]
            async with another(asker) as third:
                await third.beat(producer="p", client_id="d")
                assert await send_many(third, 1) == [SUCCESS]
        assert await send_many(asker, 1) == [SUCCESS]

    play(test, quotas=("client c connections=1",))


def test_pulled_messages_are_the_same_with_and_without_limits() -> None:
    async def pulled(asker: Asker) -> list[bytes]:
        await asker.create("t", queues=2)
        for number in range(20):
            await asker.send("t", b"%d" % number, queue=number % 2)
        replies = [Pulled(await asker.call(pull_of("t", at, queue=at % 2))) for at in range(8)]
        return [message.body for each in replies for message in each.messages]

    rules = ("client * requests=9999 bytes_out=1G", "topic * held=99", "group g bytes_out=1G")
    assert play(pulled) == play(pulled, quotas=rules)


def test_a_user_has_the_same_limit_over_all_connections_and_cannot_use_up_another_s() -> None:
    async def test(nobody: Asker, root: Asker) -> None:
        await root.create("t")
        keys = {name: await make_user(root, name) for name in ("ann", "bob")}
        for name in keys:
            await allow(root, name, ("Topic:t", "Pub"))
        async with (
            another(nobody, keys["ann"]) as one,
            another(nobody, keys["ann"]) as two,
            another(nobody, keys["bob"]) as bob,
            another(nobody, Signer("bob", "wrong")) as liar,
        ):
            codes = [code for asker in (one, two) for code in await send_many(asker, 20)]
            assert codes.count(SUCCESS) == 10
            assert BUSY not in await send_many(liar, 50)
            assert await send_many(bob, 9) == [SUCCESS] * 9
            assert await send_many(root, 50) == [SUCCESS] * 50
            async with another(nobody, keys["ann"]) as third:
                assert SUCCESS not in await send_many(third, 1)
                assert (await figures(root))["quotaRefused.user.connections"] == "1"

    play_closed(test, quotas=("user * requests=10 connections=2", "user root requests=none"))
