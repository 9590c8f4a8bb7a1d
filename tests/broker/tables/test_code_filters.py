"""Filters in Python through a broker's public door; their processes are real."""

from __future__ import annotations

import asyncio
import os
import sys
import time
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from sprocket.broker.broker import Broker
from sprocket.broker.config import BrokerConfig
from sprocket.broker.tables.code_filters import REMOVAL
from sprocket.filter.python import Upload, version_of
from sprocket.protocol.bodies import (
    ConsumerData,
    FilterFacts,
    FilterList,
    HeartbeatBody,
    SubscriptionData,
)
from sprocket.protocol.command import Command
from sprocket.protocol.requests.client import Heartbeat
from sprocket.protocol.requests.filter import FiltersOf, RemoveFilter, UploadFilter
from sprocket.protocol.requests.pull import (
    CLASS_FILTER,
    SUBSCRIPTION,
    SUSPEND,
    LitePullMessage,
    PullMessage,
)
from sprocket.runtime.clock import SystemClock
from sprocket.runtime.entropy import SystemEntropy
from sprocket.testing.disk import MemoryDisk
from tests.broker.parts import ROOT, STORE, Asker, Pulled, new_disk
from tests.support import run

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(
        sys.platform != "linux" or os.uname().machine not in ("x86_64", "aarch64"),
        reason="seccomp is Linux's, on x86_64 and arm64",
    ),
]
CONFIG = BrokerConfig(port=0, filter_workers=2, filter_cpu_ms=200, filter_pause_ms=20)
EVEN = b"def even(message): return int(message.body) % 2 == 0"
ODD = b"def even(message): return int(message.body) % 2 == 1"
FAILED, MISSING, NO_PERMISSION, INVALID = 30001, 27, 16, 23


@asynccontextmanager
async def serving(disk: MemoryDisk | None = None, **settings: object) -> AsyncIterator[Asker]:
    """A broker on a real loop, with a disk in memory."""
    broker = Broker(
        replace(CONFIG, **settings),  # type: ignore[arg-type]
        store=STORE,
        root=ROOT,
        disk=disk or new_disk(),
        clock=SystemClock(),
        entropy=SystemEntropy(),
    )
    async with broker:
        asker = Asker(broker)
        async with asker.pool:
            yield asker


def play(test: Callable[[Asker], Awaitable[None]], **settings: object) -> None:
    async def main() -> None:
        async with serving(**settings) as asker:  # type: ignore[arg-type]
            await test(asker)

    run(main())


def upload_of(source: bytes, name: str = "even", **more: object) -> UploadFilter:
    fields = {"consumer_group": "g", "topic": "t", **more}
    return UploadFilter(class_name=name, **fields)  # type: ignore[arg-type]


async def upload(asker: Asker, source: bytes, name: str = "even", **more: object) -> Command:
    return await asker.call(upload_of(source, name, **more), source)


async def pull(
    asker: Asker, offset: int = 0, *, text: str = "even", group: str = "g", hold_ms: int = 0,
    count: int = 32, kind: str = "PYTHON",
) -> Pulled:  # fmt: skip
    header = PullMessage(
        consumer_group=group, topic="t", queue_id=0, queue_offset=offset, max_msg_nums=count,
        sys_flag=SUBSCRIPTION | (SUSPEND if hold_ms else 0), suspend_timeout_millis=hold_ms,
        subscription=text, expression_type=kind,
    )  # fmt: skip
    return Pulled(await asker.call(header))


def bodies(pulled: Pulled) -> list[int]:
    return [int(message.body) for message in pulled.messages]


async def send(asker: Asker, count: int, first: int = 0) -> None:
    if first == 0:
        await asker.create("t")
    for number in range(first, first + count):
        await asker.send("t", b"%d" % number)


async def facts(asker: Asker) -> list[FilterFacts]:
    return FilterList.decode((await asker.call(FiltersOf())).body).filters


def test_a_group_gets_what_its_function_wants_and_moves_on_past_the_rest() -> None:
    async def test(asker: Asker) -> None:
        await send(asker, 7)
        reply = await upload(asker, EVEN)
        assert (reply.code, reply.remark) == (0, version_of(EVEN))
        pulled = await pull(asker)
        assert (pulled.code, bodies(pulled), pulled.next_offset) == (0, [0, 2, 4, 6], 7)
        pulled = await pull(asker, count=2)
        assert (bodies(pulled), pulled.next_offset) == ([0, 2], 4)
        (even,) = await facts(asker)
        assert (even.judged, even.wanted, even.is_running, even.is_newest) == (14, 8, True, True)

    play(test)


def test_those_who_bring_it_at_the_same_time_all_get_what_they_want() -> None:
    async def test(asker: Asker) -> None:
        async def bring_and_pull() -> list[int]:
            assert (await upload(asker, EVEN)).code == 0
            return bodies(await pull(asker))

        await send(asker, 4)
        assert await asyncio.gather(*(bring_and_pull() for _ in range(4))) == [[0, 2]] * 4

    play(test)


def test_a_version_counts_that_a_subscription_names_and_else_the_newest() -> None:
    async def test(asker: Asker) -> None:
        await send(asker, 4)
        await upload(asker, EVEN)
        await upload(asker, ODD)
        assert bodies(await pull(asker)) == [1, 3]
        assert bodies(await pull(asker, text=f"even@{version_of(EVEN)}")) == [0, 2]
        await upload(asker, EVEN)
        assert bodies(await pull(asker)) == [0, 2]
        assert (await pull(asker, text="even@0123456789abcdef")).code == MISSING

    play(test)


def test_heartbeats_tell_it_like_any_other_subscription_and_in_the_old_way() -> None:
    async def beat(asker: Asker, group: str, subscription: SubscriptionData) -> None:
        consumer = ConsumerData(group_name=group, subscriptions=[subscription])
        body = HeartbeatBody(client_id=group, consumers=[consumer]).encode()
        assert (await asker.call(Heartbeat(), body)).code == 0

    async def test(asker: Asker) -> None:
        await send(asker, 3)
        for group, name in (("new", "even"), ("old", "org.shop.even")):
            await upload(asker, EVEN, name, consumer_group=group)
        await beat(
            asker, "new",
            SubscriptionData(topic="t", expression_type="PYTHON", sub_string="even"),
        )  # fmt: skip
        await beat(
            asker, "old",
            SubscriptionData(topic="t", sub_string="org.shop.even", class_filter_mode=True),
        )  # fmt: skip
        for group, flags in (("new", 0), ("old", CLASS_FILTER)):
            for kind in (PullMessage, LitePullMessage):
                header = kind(
                    consumer_group=group, topic="t", queue_id=0, queue_offset=0,
                    max_msg_nums=32, sys_flag=flags,
                )  # fmt: skip
                assert bodies(Pulled(await asker.call(header))) == [0, 2]

    play(test)


def test_a_held_pull_ends_with_the_first_message_that_is_wanted() -> None:
    async def test(asker: Asker) -> None:
        await send(asker, 1)
        await upload(asker, ODD)
        waiting = asyncio.create_task(pull(asker, 1, hold_ms=20_000))
        while not (await facts(asker))[0].is_running:
            await send(asker, 1, first=2)
            await asyncio.sleep(0.05)
        assert not waiting.done()
        await send(asker, 1, first=3)
        pulled = await waiting
        assert bodies(pulled) == [3]

    play(test)


def test_a_backlog_of_which_nothing_is_wanted_is_looked_through_in_slices() -> None:
    async def test(asker: Asker) -> None:
        await send(asker, 300)
        await upload(asker, b"def even(message): return message.body == b'299'")
        pulled = await pull(asker)
        assert pulled.code == 20
        assert 0 < pulled.next_offset <= 128
        pulled = await pull(asker, hold_ms=10_000)
        assert (bodies(pulled), pulled.next_offset) == ([299], 300)

    play(test)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (b"def even(message:", "line 1, column 9: '(' was never closed"),
        (b"import socket", "line 1, column 1: ImportError: a filter may not import socket"),
        (b"x = 1", "the source defines no function 'even'"),
        (b"while True: pass", "was ended"),
        (b"\xff", "utf-8"),
        (b"", "1 to 65536 bytes"),
    ],
)
def test_a_mistake_is_told_at_the_upload_and_nothing_is_kept(source: bytes, words: str) -> None:
    async def test(asker: Asker) -> None:
        reply = await upload(asker, source)
        assert reply.code != 0
        assert words in (reply.remark or "")
        assert await facts(asker) == []

    play(test)


def test_a_source_that_changed_on_its_way_is_refused() -> None:
    async def test(asker: Asker) -> None:
        crc = zlib.crc32(EVEN) & 0x7FFFFFFF
        assert (await upload(asker, EVEN, class_crc=crc)).code == 0
        assert (await upload(asker, EVEN, class_crc=crc + 1)).code == 29
        assert (await upload(asker, EVEN, "a b")).code == 29
        assert (await upload(asker, EVEN, topic="a b")).code == 29

    play(test)


@pytest.mark.parametrize("harm", ["1 / 0", "while True: pass", "x = ' ' * (1 << 30)"])
def test_a_message_that_its_filter_fails_at_is_not_passed_and_the_group_hears_where(
    harm: str,
) -> None:
    source = f"def even(message):\n if message.body == b'3':\n  {harm}\n return True".encode()

    async def test(asker: Asker) -> None:
        await send(asker, 6)
        await upload(asker, source)
        await upload(asker, EVEN, consumer_group="other")
        got: list[int] = []
        while len(got) < 3:
            pulled = await pull(asker, len(got))
            assert pulled.code == 0, pulled.remark
            got += bodies(pulled)
        assert got == [0, 1, 2]
        words = []
        for _ in range(4):
            pulled = await pull(asker, 3)
            assert pulled.code == FAILED
            words.append(pulled.remark or "")
            await asyncio.sleep(0.1)
            others = await pull(asker, group="other")
            assert bodies(others) == [0, 2, 4]
        start = f"filter even@{version_of(source)} of group g, topic t"
        assert words[0].startswith(f"{start} failed at queue 0, offset 3: ")
        assert words[-1].startswith(
            f"{start} is switched off: it failed 3 times at queue 0, offset 3: "
        )
        if "while" not in harm:
            assert "line 3, column" in words[-1]
        # The same source again does not switch it on, for clients upload again and again.
        await upload(asker, source)
        assert (await pull(asker, 3)).code == FAILED
        await upload(asker, source, is_again=True)
        assert "failed at queue 0, offset 3" in ((await pull(asker, 3)).remark or "")
        # A better version goes on where the last one stood.
        await upload(asker, b"def even(message): return True")
        assert bodies(await pull(asker, 3)) == [3, 4, 5]

    play(test)


def test_what_was_uploaded_and_switched_off_stays_so_over_a_restart() -> None:
    disk = new_disk()

    async def main() -> None:
        async with serving(disk) as asker:
            await send(asker, 3)
            await upload(asker, EVEN)
            await upload(asker, b"def bad(message): return 1 / 0", "bad")
            for _ in range(3):
                assert (await pull(asker, text="bad")).code == FAILED
                await asyncio.sleep(0.1)
        async with serving(disk) as asker:
            assert bodies(await pull(asker)) == [0, 2]
            assert "is switched off" in ((await pull(asker, text="bad")).remark or "")

    run(main())


def test_while_they_are_off_nothing_is_taken_and_nothing_written() -> None:
    disk = new_disk()

    async def main() -> None:
        async with serving(disk, filter_workers=0) as asker:
            await send(asker, 1)
            assert (await upload(asker, EVEN)).code == 3
            pulled = await pull(asker)
            assert pulled.code == 1
            assert "filterServerNums (filter_workers) is 0" in (pulled.remark or "")
        assert "filterCode.json" not in disk.names(f"{ROOT}/config")

    run(main())


def test_only_those_may_upload_and_remove_that_are_named_or_sign() -> None:
    async def test(asker: Asker) -> None:
        now_ms = int(time.time() * 1000)
        reply = await upload(asker, EVEN)
        assert reply.code == NO_PERMISSION
        assert "filter_uploaders" in (reply.remark or "")
        asked = Upload("g", "t", "even", version_of(EVEN), now_ms)
        for secret, signed_ms, code in (
            ("wrong", now_ms, NO_PERMISSION),
            ("s3cret", now_ms - 3_600_000, NO_PERMISSION),
            ("s3cret", now_ms, 0),
        ):
            signature = asked._replace(signed_ms=signed_ms).signature(secret)
            reply = await upload(asker, EVEN, signed_ms=signed_ms, signature=signature)
            assert reply.code == code, reply.remark
        removal = RemoveFilter(consumer_group="g", topic="t", class_name="even")
        assert await asker.code(removal) == NO_PERMISSION
        removal.signed_ms = now_ms
        removal.signature = asked.signature("s3cret")
        assert await asker.code(removal) == NO_PERMISSION
        removal.signature = asked._replace(version=REMOVAL).signature("s3cret")
        assert await asker.code(removal) == 0

    play(test, filter_uploaders=("10.0.0.0/8",), filter_secret="s3cret")


def test_a_filter_that_was_removed_is_missed() -> None:
    async def test(asker: Asker) -> None:
        await send(asker, 1)
        await upload(asker, EVEN)
        assert bodies(await pull(asker)) == [0]
        removal = RemoveFilter(consumer_group="g", topic="t", class_name="even")
        assert await asker.code(removal) == 0
        assert (await pull(asker)).code == MISSING
        assert await asker.code(removal) == MISSING
        assert (await pull(asker, text="*")).code == INVALID

    play(test)


def test_more_filters_than_processes_take_turns() -> None:
    async def test(asker: Asker) -> None:
        await send(asker, 4)
        for group in "abcd":
            await upload(asker, EVEN, consumer_group=group)
        pulled = await asyncio.gather(*(pull(asker, group=group) for group in "abcdabcd"))
        assert [bodies(each) for each in pulled] == [[0, 2]] * 8

    play(test)


def test_a_pull_of_another_group_is_answered_while_a_filter_loops() -> None:
    async def test(asker: Asker) -> None:
        await send(asker, 1)
        await upload(asker, b"def even(message):\n while True: pass")
        looping = asyncio.create_task(pull(asker))
        await asyncio.sleep(0.05)
        count = 0
        while not looping.done():
            plain = await pull(asker, kind="TAG", text="*", group="other")
            assert bodies(plain) == [0]
            count += 1
        assert count > 10
        assert (await looping).code == FAILED

    play(test, filter_cpu_ms=1000)


def test_the_end_of_a_broker_does_not_wait_for_a_filter_that_loops() -> None:
    async def main() -> None:
        async with serving(filter_cpu_ms=60_000, drain_ms=100) as asker:
            await send(asker, 1)
            await upload(asker, b"def even(message):\n while True: pass")
            looping = asyncio.create_task(pull(asker))
            await asyncio.sleep(0.2)
            began = time.monotonic()
        assert time.monotonic() - began < 30
        looping.cancel()
        await asyncio.wait([looping])

    run(main())


def test_a_network_that_is_none_is_refused_at_the_start() -> None:
    from sprocket.base.errors import ConfigError

    async def main() -> None:
        with pytest.raises(ConfigError, match="filter_uploaders"):
            async with serving(filter_uploaders=("10.0.0.0/99",)):
                pass

    run(main())
