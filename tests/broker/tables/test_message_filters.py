"""SQL92 at the broker: who gets what, what is refused, and that a long scan holds nobody up."""

from __future__ import annotations

import asyncio
from itertools import groupby
from operator import itemgetter

import pytest

from sprocket.broker.reading import pull
from sprocket.protocol.bodies import (
    CheckClientBody,
    ConsumerData,
    HeartbeatBody,
    SubscriptionData,
)
from sprocket.protocol.command import Command
from sprocket.protocol.requests.admin import UpdateBrokerConfig
from sprocket.protocol.requests.client import CheckClient, Heartbeat
from sprocket.protocol.requests.pull import SUSPEND, PullMessage
from sprocket.protocol.requests.send import SendBack
from sprocket.store.config import StoreConfig
from sprocket.store.reading.queue_reader import SCANNED_RECORDS_MAX
from sprocket.testing.loop import simulate
from tests.broker.parts import (
    NOT_FOUND,
    RETRY,
    SUCCESS,
    Asker,
    Pulled,
    new_disk,
    play,
    pull_of,
    serving,
)

#: Room for some thousand entries in one file.
ROOMY = StoreConfig(log_file_bytes=1 << 22, queue_file_bytes=20 << 13)


def sql_pull(text: str, offset: int = 0, *, hold_ms: int = 0, topic: str = "T") -> PullMessage:
    """A pull that brings an SQL92 subscription."""
    header = pull_of(topic, offset, hold_ms=hold_ms, tags=text)
    header.expression_type = "SQL92"
    return header


async def ask(asker: Asker, text: str, offset: int = 0, *, hold_ms: int = 0) -> Pulled:
    return Pulled(await asker.call(sql_pull(text, offset, hold_ms=hold_ms)))


async def subscribe(asker: Asker, text: str, *, version: int = 1) -> Command:
    """A heartbeat of group `g` with an SQL92 subscription."""
    subscription = SubscriptionData(
        topic="T", sub_string=text, expression_type="SQL92", sub_version=version
    )
    group = ConsumerData(
        group_name="g", consume_type="CONSUME_PASSIVELY", message_model="CLUSTERING",
        subscriptions=[subscription],
    )  # fmt: skip
    body = HeartbeatBody(client_id="c1", consumers=[group])
    return await asker.call(Heartbeat(), body.encode())


def known_pull(offset: int = 0, *, version: int = 0, topic: str = "T") -> PullMessage:
    """A pull by the subscription that the group's heartbeats told."""
    header = pull_of(topic, offset)
    header.sys_flag = 0
    header.subscription = None
    header.sub_version = version
    return header


def bodies(pulled: Pulled) -> list[bytes]:
    return [message.body for message in pulled.messages]


async def fill(asker: Asker) -> None:
    for number in range(6):
        region = "eu" if number % 2 else "us"
        await asker.send("T", b"%d" % number, amount=str(number), region=region, TAGS="t")
    await asker.send("T", b"bare")
    await asker.send("T", b"words", amount="many", region="eu")


def test_properties_choose() -> None:
    async def test(asker: Asker) -> None:
        await fill(asker)
        found = await ask(asker, "amount > 1 AND region = 'eu'")
        assert (bodies(found), found.next_offset) == ([b"3", b"5"], 8)
        assert bodies(await ask(asker, "amount IS NULL")) == [b"bare"]
        assert bodies(await ask(asker, "TAGS = 't' AND amount BETWEEN 0 AND 1")) == [b"0", b"1"]
        none = await ask(asker, "region = 'asia'")
        assert (none.code, none.next_offset, none.remark) == (RETRY, 8, "NO_MATCHED_MESSAGE")

    play(test)


def test_a_groups_heartbeat_brings_the_filter_and_a_newer_one_replaces_it() -> None:
    async def test(asker: Asker) -> None:
        await fill(asker)
        await subscribe(asker, "amount > 4")
        assert bodies(Pulled(await asker.call(known_pull()))) == [b"5"]
        await subscribe(asker, "amount < 1", version=2)
        assert bodies(Pulled(await asker.call(known_pull(version=2)))) == [b"0"]
        assert await asker.code(known_pull(version=3)) == 25

    play(test)


def test_a_text_that_cannot_be_read_is_refused_wherever_it_comes() -> None:
    async def test(asker: Asker) -> None:
        await fill(asker)
        subscription = SubscriptionData(
            topic="T", sub_string="a > 5 AND", expression_type="SQL92", sub_version=1
        )
        checked = await asker.call(
            CheckClient(), CheckClientBody(subscription_data=subscription).encode()
        )
        assert (await subscribe(asker, "a > 5 AND")).code == SUCCESS
        for reply in (
            checked, await asker.call(sql_pull("a > 5 AND")), await asker.call(known_pull()),
        ):  # fmt: skip
            assert reply.code == 23
            assert "column 10" in (reply.remark or "")
        assert await asker.code(sql_pull("")) == 23
        subscription.sub_string = "a > 5"
        body = CheckClientBody(subscription_data=subscription).encode()
        assert await asker.code(CheckClient(), body) == SUCCESS

    play(test)


def test_switched_off_it_says_which_switch() -> None:
    async def test(asker: Asker) -> None:
        await fill(asker)
        sql = SubscriptionData(topic="T", sub_string="a > 5", expression_type="SQL92")
        body = CheckClientBody(subscription_data=sql).encode()
        for reply in (
            await asker.call(CheckClient(), body), await asker.call(sql_pull("amount > 5")),
        ):  # fmt: skip
            assert reply.code == 1
            assert "support consumer to filter message by SQL92" in (reply.remark or "")
            assert "enablePropertyFilter" in (reply.remark or "")
        assert (await asker.pull("T", tags="t")).code == SUCCESS
        assert await asker.code(UpdateBrokerConfig(), b"enablePropertyFilter=true\n") == SUCCESS
        assert bodies(await ask(asker, "amount > 4")) == [b"5"]

    play(test, sql_filters=False)


def test_a_held_pull_waits_for_what_matches() -> None:
    async def test(asker: Asker) -> None:
        await fill(asker)
        waiting = asyncio.create_task(ask(asker, "amount > 100", 8, hold_ms=10_000))
        await asyncio.sleep(1)
        await asker.send("T", b"small", amount="7")
        await asyncio.sleep(1)
        assert not waiting.done()
        await asker.send("T", b"large", amount="700")
        assert bodies(await waiting) == [b"large"]
        late = await ask(asker, "amount > 100", 10, hold_ms=2_000)
        assert (late.code, late.next_offset) == (NOT_FOUND, 10)

    play(test)


def test_a_message_far_behind_what_does_not_match_is_found_without_parking() -> None:
    async def test(asker: Asker) -> None:
        loop = asyncio.get_running_loop()
        count = 3 * SCANNED_RECORDS_MAX
        for number in range(count):
            await asker.send("T", b"%d" % number, n=str(number))
        began = loop.time()
        text = f"n >= {count - 2}"
        found = await ask(asker, text, hold_ms=20_000)
        assert bodies(found) == [b"%d" % (count - 2), b"%d" % (count - 1)]
        assert loop.time() - began < 1
        at_once = await ask(asker, text)
        assert (at_once.code, at_once.next_offset) == (RETRY, SCANNED_RECORDS_MAX)

    play(test, store=ROOMY)


def test_scans_take_turns_one_for_a_moment_in_each_turn_of_the_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pull, "_TURN_READS", 2)

    async def test(asker: Asker) -> None:
        count = 6 * SCANNED_RECORDS_MAX
        for number in range(count):
            await asker.send("T", b"%d" % number, n=str(number))
        store = asker.broker._store
        read, turn = store.read, 0
        turns: list[tuple[int, int]] = []

        async def tick() -> None:
            nonlocal turn
            while len(turns) < 4 * 6:
                turn += 1
                await asyncio.sleep(0)

        def noted(topic: str, number: int, offset: int, **limits: object) -> object:
            turns.append((turn, offset))
            if len(turns) == 4:
                ticking.append(asyncio.create_task(tick()))
            return read(topic, number, offset, **limits)  # type: ignore[arg-type]

        ticking: list[asyncio.Task[None]] = []
        store.read = noted  # type: ignore[assignment, method-assign]
        scans = [ask(asker, f"n = {count - 1}", hold_ms=20_000) for _ in range(4)]
        for found in await asyncio.gather(*scans):
            assert bodies(found) == [b"%d" % (count - 1)]
        by_turn = [[offset for _, offset in each] for _, each in groupby(turns[4:], itemgetter(0))]
        assert sorted(map(len, by_turn)) == [1] * 4 + [2] * 8
        assert all(each[-1] - each[0] in (0, SCANNED_RECORDS_MAX) for each in by_turn)

    play(test, store=ROOMY)


@pytest.mark.parametrize("is_killed", [False, True])
def test_after_a_restart_nobody_gets_what_the_filter_keeps_back(is_killed: bool) -> None:
    disk = new_disk()

    async def before() -> None:
        async with serving(disk) as asker:
            await fill(asker)
            await subscribe(asker, "amount > 4")
            assert bodies(Pulled(await asker.call(known_pull()))) == [b"5"]
            if is_killed:
                await asyncio.sleep(1)

    async def after() -> None:
        async with serving(disk) as asker:
            assert await asker.code(known_pull()) == 24
            await subscribe(asker, "amount > 4")
            assert bodies(Pulled(await asker.call(known_pull()))) == [b"5"]

    simulate(lambda network: before())
    simulate(lambda network: after())


def test_a_message_given_back_is_judged_by_its_own_properties() -> None:
    async def test(asker: Asker) -> None:
        await asker.send("T", b"x", amount="9", TAGS="t")
        await subscribe(asker, "amount > 5")
        (message,) = Pulled(await asker.call(known_pull())).messages
        header = SendBack(
            offset=message.log_offset, group="g", delay_level=1, origin_topic="T", origin_msg_id="i"
        )
        assert await asker.code(header) == SUCCESS
        await asyncio.sleep(3)
        retries = "%RETRY%g"
        plain = await asker.pull(retries)
        assert (bodies(plain), plain.messages[0].reconsume_times) == ([b"x"], 1)
        for text, code in [("amount > 5 AND TAGS = 't'", SUCCESS), ("amount > 50", RETRY)]:
            assert await asker.code(sql_pull(text, topic=retries)) == code

    play(test)


def test_a_held_pull_ends_when_the_switch_is_turned_off() -> None:
    async def test(asker: Asker) -> None:
        await fill(asker)
        header = sql_pull("amount > 100", 8, hold_ms=60_000)
        assert header.sys_flag & SUSPEND
        waiting = asyncio.create_task(asker.call(header))
        await asyncio.sleep(1)
        await asker.code(UpdateBrokerConfig(), b"enablePropertyFilter=false\n")
        await asker.send("T", b"more", amount="700")
        assert (await waiting).code == 1

    play(test)
