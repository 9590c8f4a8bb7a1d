"""Dramatiq over a real broker, with its worker in this process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from sprocket.testing.node_thread import NodeThread

pytest.importorskip("dramatiq")

import dramatiq
from dramatiq import Worker
from dramatiq.errors import ConnectionClosed, QueueJoinTimeout, QueueNotFound

from sprocket.base.errors import SendFailed
from sprocket.integrations.dramatiq import QueueOptions, RocketMQDramatiqBroker
from sprocket.integrations.dramatiq.consumer import BlockingTaskQueues

pytestmark = pytest.mark.process
ROOT = Path(__file__).resolve().parents[3]
WAIT = 60.0


@pytest.fixture
def broker(own_rocketmq: NodeThread) -> Iterator[RocketMQDramatiqBroker]:
    made = RocketMQDramatiqBroker(
        own_rocketmq.nameservers, options=QueueOptions(invisible_ms=30_000)
    )
    yield made
    made.close()


@contextmanager
def working(broker: RocketMQDramatiqBroker, threads: int = 2, stop_ms: int = 20_000) -> Any:
    worker = Worker(broker, worker_timeout=100, worker_threads=threads)
    worker.start()
    try:
        yield worker
    finally:
        worker.stop(stop_ms)


def until(holds: Any) -> None:
    end = time.monotonic() + WAIT
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)


def dead_letters(node: NodeThread, queue: str) -> int:
    with BlockingTaskQueues(node.nameservers) as queues:
        return queues.count(f"%DLQ%{queue}")


def test_what_is_more_urgent_runs_first(own_rocketmq: NodeThread) -> None:
    options = QueueOptions(max_priority=5)
    broker = RocketMQDramatiqBroker(own_rocketmq.nameservers, options=options)
    ran: list[str] = []

    @dramatiq.actor(broker=broker)
    def note(word: str) -> None:
        ran.append(word)

    note.send("later")
    note.send_with_options(args=("usual",), broker_priority=2)
    note.send_with_options(args=("urgent",), broker_priority=5)
    with working(broker, threads=1):
        until(lambda: len(ran) == 3)
    broker.close()
    assert ran == ["urgent", "usual", "later"]


def test_actors_run_once_and_delays_wait_at_the_broker(broker: RocketMQDramatiqBroker) -> None:
    ran: list[tuple[int, float]] = []

    @dramatiq.actor(broker=broker)
    def note(number: int) -> None:
        ran.append((number, time.monotonic()))

    with working(broker):
        began = time.monotonic()
        note.send_with_options(args=(99,), delay=1_500)
        for number in range(20):
            note.send(number)
        until(lambda: len(ran) == 21)
        assert dict(ran)[99] - began >= 1.4
        broker.join("default", timeout=20_000)
    assert sorted(number for number, _ in ran) == [*range(20), 99]


def test_what_fails_is_tried_again_and_then_is_a_dead_letter(
    broker: RocketMQDramatiqBroker, own_rocketmq: NodeThread
) -> None:
    tries: list[str] = []

    @dramatiq.actor(broker=broker, max_retries=2, min_backoff=50, max_backoff=100)
    def fails() -> None:
        tries.append("fails")
        raise ValueError("no")

    with working(broker):
        fails.send()
        with BlockingTaskQueues(own_rocketmq.nameservers) as queues:
            queues.send("default", b"none of dramatiq's")
        until(lambda: dead_letters(own_rocketmq, "default") == 2)
    assert len(tries) == 3


def test_what_a_worker_has_not_begun_or_ended_goes_to_others_at_once(
    broker: RocketMQDramatiqBroker, own_rocketmq: NodeThread
) -> None:
    ran: list[int] = []
    release = threading.Event()

    @dramatiq.actor(broker=broker, actor_name="slow")
    def slow(number: int) -> None:
        ran.append(number)
        if len(ran) == 1:
            release.wait(WAIT)

    for number in range(4):
        slow.send(number)
    with working(broker, threads=1, stop_ms=200):
        until(lambda: len(ran) == 1)
    broker.close()
    other = RocketMQDramatiqBroker(own_rocketmq.nameservers)
    dramatiq.actor(ran.append, broker=other, actor_name="slow")
    began = time.monotonic()
    with working(other):
        until(lambda: len(ran) == 5)
    assert time.monotonic() - began < 20
    assert sorted(set(ran)) == [0, 1, 2, 3]
    release.set()
    other.close()


def test_queues_are_flushed_and_what_cannot_be_is_refused(broker: RocketMQDramatiqBroker) -> None:
    @dramatiq.actor(broker=broker, queue_name="mail.out")
    def mail() -> None: ...

    mail.send()
    with pytest.raises(QueueJoinTimeout):
        broker.join("mail.out", timeout=100)
    broker.flush_all()
    broker.join("mail.out", timeout=5_000)
    with pytest.raises(QueueNotFound):
        broker.consume("nobody")
    away = RocketMQDramatiqBroker("127.0.0.1:1")
    with pytest.raises(ConnectionClosed):
        dramatiq.actor(lambda: None, broker=away, actor_name="away").send()
    away.close()


def test_a_send_that_fails_is_a_closed_connection(
    broker: RocketMQDramatiqBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    actor = dramatiq.actor(lambda: None, broker=broker, actor_name="nothing")
    actor.send()

    def fail(*_: Any, **__: Any) -> None:
        raise SendFailed("no broker answers")

    monkeypatch.setattr(BlockingTaskQueues, "send", fail)
    with pytest.raises(ConnectionClosed):
        actor.send()


def test_the_message_of_a_worker_that_is_killed_is_done_by_another(
    own_rocketmq: NodeThread, tmp_path: Path
) -> None:
    from tests.integrations.dramatiq import shop

    notes = tmp_path / "notes"

    def lines(word: str) -> list[str]:
        text = notes.read_text() if notes.exists() else ""
        return [line for line in text.splitlines() if line.startswith(word)]

    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    command = [sys.executable, "-m", "dramatiq", "tests.integrations.dramatiq.shop:broker"]
    started: list[subprocess.Popen[bytes]] = []

    def work() -> None:
        with (tmp_path / "worker.log").open("ab") as log:
            started.append(
                subprocess.Popen(
                    [*command, "--processes", "1", "--threads", "1"],
                    env={**os.environ, "PYTHONPATH": path},
                    cwd=tmp_path,
                    stdout=log,
                    stderr=log,
                )
            )

    try:
        shop.note.send(str(notes))
        shop.broker.close()
        work()
        until(lambda: lines("begun"))
        os.kill(int(lines("begun")[0].split()[1]), signal.SIGKILL)
        work()
        until(lambda: lines("ended"))
    finally:
        for worker in started:
            worker.terminate()
        for worker in started:
            worker.wait(WAIT)
    assert len(set(lines("begun"))) == 2
    assert len(lines("ended")) == 1
