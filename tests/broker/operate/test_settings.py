"""Operators and settings."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from sprocket.base.config import Declared, settings_of
from sprocket.broker.config import BrokerConfig
from sprocket.broker.live_settings import LIVE
from sprocket.protocol.requests.admin import (
    BrokerConfigOf,
    CleanExpiredQueues,
    DeleteExpiredLog,
    SetReadAhead,
    UpdateBrokerConfig,
)
from sprocket.protocol.requests.send import SendMessageV2
from sprocket.store.config import StoreConfig
from tests.broker.parts import ROOT, STORE, SUCCESS, Asker, play


def test_settings_are_shown_and_a_change_counts_at_once() -> None:
    async def test(asker: Asker) -> None:
        reply = await asker.call(BrokerConfigOf())
        assert b"autoCreateTopicEnable=true\n" in bytes(reply.body)
        assert '"counter":0' in reply.fields["version"]
        assert await asker.code(UpdateBrokerConfig(), b"autoCreateTopicEnable=false\n") == SUCCESS
        reply = await asker.call(BrokerConfigOf())
        assert b"autoCreateTopicEnable=false\n" in bytes(reply.body)
        assert '"counter":1' in reply.fields["version"]
        for body, code in ((b"brokerName=x\n", 29), (b"noSuchKey=1\n", 29), (b"\xff", 1)):
            assert await asker.code(UpdateBrokerConfig(), body) == code

    play(test)


ALL = [
    *settings_of(BrokerConfig).values(),
    *settings_of(StoreConfig).values(),
]


def another(declared: Declared, now: str) -> str:
    """A value that a setting may have, other than the present one."""
    if declared.about.choices is not None:
        return next(each for each in declared.about.choices if each != now)
    if declared.type is bool:
        return "false" if now == "true" else "true"
    if declared.type is int:
        low = declared.about.minimum or 0
        high = declared.about.maximum
        return next(str(n) for n in (int(now) + 1, int(low)) if high is None or n <= high)
    return "05" if declared.name == "delete_hours" else "10.0.0.0/8"


@pytest.mark.parametrize("declared", ALL, ids=lambda each: each.key)
def test_each_setting_takes_effect_or_is_refused_by_name(declared: Declared) -> None:
    async def test(asker: Asker) -> None:
        async def shown() -> dict[str, str]:
            text = bytes((await asker.call(BrokerConfigOf())).body).decode()
            return dict(line.split("=", 1) for line in text.splitlines())

        names = declared.rocketmq_names or [declared.key]
        before = await shown()
        if declared.about.is_secret:
            assert before[names[0]] == ""
            value = "x"
        else:
            value = another(declared, before[names[0]])
        for name in [*names, declared.key]:
            # Another setting in the same request is changed with it, or not at all.
            body = f"shortPollingTimeMills=77\n{name}={value}\n".encode()
            reply = await asker.call(UpdateBrokerConfig(), body)
            after = await shown()
            if reply.code == SUCCESS:
                assert declared.key in LIVE
                assert after[names[0]] == value
                if name != "shortPollingTimeMills":
                    assert after["shortPollingTimeMills"] in ("77", value)
            else:
                assert reply.code == 29
                assert name in (reply.remark or "")
                assert after == before

    play(test)


async def refuse_large(asker: Asker) -> None:
    assert await asker.code(UpdateBrokerConfig(), b"maxMessageSize=10\n") == SUCCESS
    header = SendMessageV2(producer_group="p", topic="T", queue_id=0, born_timestamp=1)
    assert await asker.code(header, b"x" * 11) == 13
    assert await asker.code(header, b"x" * 10) == SUCCESS


async def delete_sooner(asker: Asker) -> None:
    await asker.create("T")
    body, sent = b"x" * 60_000, 0
    while len(await log_files(asker)) < 4:
        await asker.send("T", body)
        sent += 1
    await asyncio.sleep(2 * 3_600)
    assert len(await log_files(asker)) == 4
    changes = b"fileReservedTime=1\ndeleteWhen=" + b";".join(b"%02d" % n for n in range(24))
    assert await asker.code(UpdateBrokerConfig(), changes) == SUCCESS
    await asyncio.sleep(120)
    assert len(await log_files(asker)) < 4


async def log_files(asker: Asker) -> list[str]:
    disk = asker.broker._world.disk
    return disk.names(f"{ROOT}/commitlog")


async def make_topics_again(asker: Asker) -> None:
    header = SendMessageV2(
        producer_group="p", topic="New", queue_id=0, born_timestamp=1, default_topic="TBW102"
    )
    assert await asker.code(header, b"x") == 17
    assert await asker.code(UpdateBrokerConfig(), b"autoCreateTopicEnable=true\n") == SUCCESS
    assert await asker.code(header, b"x") == SUCCESS


async def keep_what_waits(asker: Asker) -> None:
    await asker.send("T", TIMER_DELAY_SEC="3600")
    reply = await asker.call(UpdateBrokerConfig(), b"fileReservedTime=24\n")
    assert reply.code == 29
    assert "fileReservedTime" in (reply.remark or "")


@pytest.mark.parametrize("story", [refuse_large, keep_what_waits])
def test_what_changes_is_in_force_at_once(story: Callable[[Asker], Awaitable[None]]) -> None:
    async def test(asker: Asker) -> None:
        await asker.create("T")
        await story(asker)

    play(test)


def test_files_are_deleted_by_the_new_rules() -> None:
    store = replace(
        STORE, kept_hours=72, flush_interval_ms=60_000, queue_flush_interval_ms=60_000,
        disk_check_interval_ms=60_000, timers=False,
    )  # fmt: skip
    play(delete_sooner, store=store)


def test_topics_are_made_once_that_is_switched_on() -> None:
    play(make_topics_again, auto_create_topics=False)


def test_cleaning_that_the_store_does_by_itself_is_agreed_to() -> None:
    async def test(asker: Asker) -> None:
        assert await asker.code(CleanExpiredQueues()) == SUCCESS
        assert await asker.code(DeleteExpiredLog()) == SUCCESS

    play(test)


def test_reading_ahead_is_switched_and_counts_for_new_files_too() -> None:
    async def test(asker: Asker) -> None:
        disk = asker.broker._world.disk
        await asker.create("T")
        await asker.send("T")
        header = SetReadAhead(read_ahead_mode=1)
        reply = await asker.call(header)
        assert reply.remark == "set commitlog readahead mode success, mode: 1"
        while len(await log_files(asker)) < 3:
            await asker.send("T", b"x" * 60_000)
        assert set(disk.read_ahead.values()) == {False}
        assert len(disk.read_ahead) == 3
        shown = bytes((await asker.call(BrokerConfigOf())).body)
        assert b"dataReadAheadEnable=false\n" in shown
        assert await asker.code(SetReadAhead(read_ahead_mode=0)) == SUCCESS
        assert set(disk.read_ahead.values()) == {True}
        assert await asker.code(SetReadAhead(read_ahead_mode=2)) == 29

    play(test)


def test_expired_files_are_deleted_at_once_when_an_operator_says_so() -> None:
    async def test(asker: Asker) -> None:
        await asker.create("T")
        while len(await log_files(asker)) < 14:
            await asker.send("T", b"x" * 60_000)
        await asyncio.sleep(3 * 3_600)
        assert len(await log_files(asker)) == 14
        assert await asker.code(DeleteExpiredLog()) == SUCCESS
        await asyncio.sleep(5)
        assert len(await log_files(asker)) == 1  # more at once than a check removes

    store = replace(STORE, kept_hours=1, delete_hours="23", timers=False)
    play(test, store=store)
