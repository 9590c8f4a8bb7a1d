"""Requests with numbers and texts that no honest client sends: each is answered in words, and the
others get what is theirs."""

from __future__ import annotations

import asyncio
import base64
import logging
import random

import pytest

from sprocket.message.offsets import LONG_MAX
from sprocket.protocol.bodies import AckBatchBody, AckItem
from sprocket.protocol.command import Header
from sprocket.protocol.requests.pop import (
    AckMessage,
    AckMessages,
    ChangeInvisible,
    Notification,
    PeekMessage,
    PollingInfo,
    PopMessage,
)
from tests.broker.parts import Asker, play
from tests.broker.pop.popping import FOUND, POLLING_FULL, ack, lag, pop
from tests.broker.pop.test_pops import filled

_LONGS = (0, 1, -1, 31, 32, 33, 999, 4096, 1 << 31, LONG_MAX - 1, LONG_MAX, -LONG_MAX - 1)
_INTS = (0, 1, -1, 2, 32, 33, 999, (1 << 31) - 1, -(1 << 31))
_TEXTS = ("t", "g", "", " ", "%RETRY%g_t", "none", "x" * 300, "\x00", "t@g", "é" * 90)
_HANDLES = (
    "", " ", "0", "0 1 2 3 0 b 0 0", "0 1 2 3 9 b 0 0", f"{LONG_MAX} " * 4 + "0 b 0 0",
    "0 0 0 999 0 b 0 0", f"0 {LONG_MAX} {LONG_MAX} 1 0 broker-a 0 0", "-1 -1 -1 -1 0 b -1 -1",
    "0 1 2 7 0 broker-a 0 0 99", "1e3 1 2 3 0 b 0 0", "٣ 1 2 3 0 b 0 0", "0 " * 900,
)  # fmt: skip


def _requests(chance: random.Random) -> tuple[Header, bytes]:
    def text() -> str:
        return chance.choice(_TEXTS) if chance.random() < 0.3 else chance.choice(("t", "g"))

    def long() -> int:
        return chance.choice(_LONGS)

    place = {
        "consumer_group": "g" if chance.random() < 0.7 else text(),
        "topic": "t" if chance.random() < 0.7 else text(), "queue_id": chance.choice(_INTS),
    }  # fmt: skip
    handle = {"extra_info": chance.choice(_HANDLES), "offset": long()}
    poll = {"poll_time": chance.choice((0, -1, -LONG_MAX)), "born_time": long()}
    kinds = {
        PopMessage: {
            **place, **poll, "max_msg_nums": chance.choice(_INTS), "invisible_time": long(),
            "init_mode": chance.choice(_INTS), "exp": chance.choice((None, "", "*", "a || ", "((")),
            "exp_type": chance.choice((None, "TAG", "SQL92", "x")),
            "order": chance.random() < 0.5, "attempt_id": chance.choice((None, "", "a" * 9000)),
        },
        AckMessage: {**place, **handle},
        ChangeInvisible: {**place, **handle, "invisible_time": long()},
        Notification: {**place, **poll, "order": chance.random() < 0.5},
        PeekMessage: {**place, "max_msg_nums": chance.choice(_INTS)},
        PollingInfo: place,
    }  # fmt: skip
    if chance.random() < 0.2:
        item = AckItem(
            bits=chance.choice(("", "!", "AQ==", base64.b64encode(b"\xff" * 8192).decode())),
            consumer_group=text(), invisible_time=long(), pop_time=long(), queue_id=long(),
            retry=chance.choice((None, "0", "1", "2", "9", "")), revive_queue_id=long(),
            start_offset=long(), topic=text(),
        )  # fmt: skip
        return AckMessages(), AckBatchBody(acks=[item], broker_name="broker-a").encode()
    kind = chance.choice(list(kinds))
    return kind(**kinds[kind]), b""  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", range(4))
def test_each_request_is_answered_and_no_other_group_suffers(
    seed: int, caplog: pytest.LogCaptureFixture
) -> None:
    async def test(asker: Asker) -> None:
        await filled(asker, 6)
        mine = await pop(asker, count=3, group="honest")
        chance = random.Random(seed)
        for _ in range(150):
            header, body = _requests(chance)
            reply = await asker.call(header, body)
            assert reply.code == FOUND or reply.remark, (header, reply.code)
        assert await ack(asker, mine, group="honest") == [0, 0, 0]
        assert await lag(asker, "honest") == 3
        found = await pop(asker, count=32, group="honest", order=True)
        assert found.bodies == [b"3", b"4", b"5"]

    with caplog.at_level(logging.ERROR):
        play(test)
    assert not [each.getMessage() for each in caplog.records if "failed" in each.getMessage()]


def test_a_batch_of_all_bits_is_refused_and_acknowledges_nothing() -> None:
    async def test(asker: Asker) -> None:
        await filled(asker, 40)
        found = await pop(asker, count=32)
        first = found.handles[0]
        item = AckItem(
            bits=base64.b64encode(b"\xff" * 5).decode(), consumer_group="g",
            invisible_time=first.invisible_ms, pop_time=first.pop_ms, queue_id=0, retry="0",
            revive_queue_id=first.revive_queue, start_offset=0, topic="t",
        )  # fmt: skip
        body = AckBatchBody(acks=[item], broker_name="broker-a").encode()
        assert await asker.code(AckMessages(), body) == 29
        assert await lag(asker) == 40

    play(test)


def test_a_peer_that_floods_held_pops_leaves_those_of_others() -> None:
    async def test(asker: Asker) -> None:
        await asker.create("t")
        flood = [asyncio.create_task(pop(asker, group="flood", hold_ms=100_000)) for _ in range(60)]
        waiting = asyncio.create_task(pop(asker, group="honest", hold_ms=100_000))
        await asyncio.sleep(1)
        ended = [each for each in flood if each.done()]
        assert {each.result().code for each in ended} == {POLLING_FULL}
        assert len(ended) == 20
        await asker.send("t", b"new")
        assert (await waiting).bodies == [b"new"]
        assert sum(each.done() for each in flood) <= 21
        for each in flood:
            each.cancel()

    play(test, held_pops_queue_max=40)
