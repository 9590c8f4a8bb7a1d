"""Sends that ask for a time, read in runs: nothing about them is otherwise than alone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest

from sprocket.broker.sending.acknowledgement import Acknowledgement
from sprocket.broker.sending.destination import Destination
from sprocket.broker.sending.run_reader import RunReader
from sprocket.protocol.requests.send import SendMessageV2
from sprocket.store.config import StoreConfig
from sprocket.testing.clock import EPOCH_MS
from sprocket.testing.disk import FaultyDisk
from tests.broker.parts import ROOT, STORE, Asker, play, pull_of

DUE = f"TIMER_DELIVER_MS\x01{EPOCH_MS + 60_000}\x02"
KEY = "UNIQ_KEY\x01{}\x02"
PLAIN = [
    KEY + DUE + "WAIT\x01true\x02TAGS\x01t\x02",
    DUE + KEY + "KEYS\x01k\x02größe\x01日本\x02",
    "a\x011\x02" + KEY + DUE[:-1],
    KEY + DUE.replace("60", "61") + "WAIT\x01false\x02",
]
OTHERS = [
    DUE,
    KEY,
    KEY + DUE + DUE,
    KEY + f"TIMER_DELIVER_MS\x01{EPOCH_MS - 1}\x02",
    KEY + "TIMER_DELIVER_MS\x010000000000001\x02",
    KEY + "TIMER_DELAY_MS\x0160000\x02",
    KEY + "TIMER_DELAY_SEC\x0160\x02" + DUE,
    KEY + DUE + "DELAY\x013\x02",
    KEY + DUE + "TRAN_MSG\x01true\x02",
    KEY + DUE + "TIMER_OUT_MS\x011\x02",
    KEY + DUE + "REAL_TOPIC\x01U\x02",
    KEY.replace("{}", "größe{}") + DUE,
    KEY + DUE + "CLUSTER\x01c\x02",
    KEY + "X" + DUE,
    KEY + "x\x01y" + DUE,
    KEY + DUE + "b\x01\x02",
    KEY + f"TIMER_DELIVER_MS\x01{EPOCH_MS + 300 * 86_400_000}\x02",
    KEY + "TIMER_DELIVER_MS\x01soon\x02",
    KEY + DUE + "long\x01" + "x" * 32_600 + "\x02",
]
TOPICS = ("T", "rmq_sys_wheel_timer", "RMQ_SYS_TRANS_HALF_TOPIC", "SCHEDULE_TOPIC_XXXX")


def sent(texts: list[str], store: StoreConfig = STORE) -> list[object]:
    """What is answered to sends that come together, and what is stored."""

    async def test(asker: Asker) -> list[object]:
        await asker.create("T", 2)
        headers = [
            SendMessageV2(
                producer_group="p", topic="T", queue_id=number % 2, born_timestamp=1,
                properties=text.format(f"K{number}"), reconsume_times=number,
            )
            for number, text in enumerate(texts)
        ]  # fmt: skip
        replies = await asyncio.gather(
            *(asker.call(each, b"%d" % number) for number, each in enumerate(headers))
        )
        found: list[object] = [(each.code, each.remark, dict(each.fields)) for each in replies]
        for topic in TOPICS:
            for queue in range(2):
                found.append(bytes((await asker.call(pull_of(topic, 0, queue=queue))).body))
        return found

    return play(test, store=store)


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[int]]:
    """How many messages that wait each run had."""
    runs: list[int] = []
    right = RunReader.read_run

    def read(self: RunReader, *sends: object) -> list[Destination]:
        found = right(self, *sends)  # type: ignore[arg-type]
        if found:
            runs.append(sum(each.wait is not None for each in found))
        return found

    monkeypatch.setattr(RunReader, "read_run", read)
    return lambda: runs


#: All of these wait for the disk, if senders do.
WAITING = PLAIN[:3]


@pytest.mark.parametrize("plain", [PLAIN, WAITING])
@pytest.mark.parametrize("flush", ["ASYNC_FLUSH", "SYNC_FLUSH"])
def test_they_are_stored_and_answered_as_each_alone(
    flush: str,
    plain: list[str],
    counted: Callable[[], list[int]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = replace(STORE, flush=flush)
    texts = [*plain, OTHERS[0], *plain]
    together = sent(texts, store)
    assert sum(counted()) == 2 * len(plain)
    assert max(counted()) > 1
    monkeypatch.setattr(RunReader, "read_run", lambda *sends: [])
    assert sent(texts, store) == together


def test_what_asks_for_more_is_looked_at_closer(
    counted: Callable[[], list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [text for other in OTHERS for text in (PLAIN[0], other)]
    together = sent(texts)
    assert set(counted()) == {1}
    monkeypatch.setattr(RunReader, "read_run", lambda *sends: [])
    assert sent(texts) == together


def test_those_that_wait_for_the_disk_wait_together(monkeypatch: pytest.MonkeyPatch) -> None:
    waits = 0
    right = Acknowledgement._safe

    def safe(self: Acknowledgement, end: int) -> object:
        nonlocal waits
        waits += 1
        return right(self, end)

    monkeypatch.setattr(Acknowledgement, "_safe", safe)
    found = sent(WAITING * 10, replace(STORE, flush="SYNC_FLUSH"))
    assert 0 < waits < 15
    codes = [each[0] for each in found[:30]]  # type: ignore[index]
    assert codes == [0] * 30


def test_those_that_wait_together_too_long_are_each_told_so() -> None:
    async def test(asker: Asker) -> None:
        await asker.create("T", 1)
        header = SendMessageV2(
            producer_group="p", topic="T", queue_id=0, born_timestamp=1,
            properties=WAITING[0].format("K"),
        )  # fmt: skip
        replies = await asyncio.gather(*(asker.call(header, b"x") for _ in range(3)))
        assert [each.code for each in replies] == [10, 10, 10]
        assert all(each.fields["recallHandle"] for each in replies)

    disk = FaultyDisk(sync_seconds=(2.0, 2.0))
    disk.make_directory(ROOT)
    play(test, disk, store=replace(STORE, flush="SYNC_FLUSH"), flush_timeout_ms=1000)
