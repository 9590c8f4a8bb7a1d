"""Celery itself: callers here, workers in processes of their own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import celery
import pytest

from sprocket.integrations.celery import shared_stations
from sprocket.testing.node_thread import NodeThread

pytestmark = pytest.mark.process
ROOT = Path(__file__).resolve().parents[3]
WAIT = 60.0


class Shop:
    """The broker, workers, and the application as a caller has it."""

    def __init__(self, node: NodeThread, folder: Path) -> None:
        self.folder = folder
        self.url = f"sprocket+rocketmq://{node.nameservers}"
        self.environment = {
            **os.environ,
            "SHOP_BROKER": self.url,
            "PYTHONPATH": os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH")))),
        }
        self.workers: list[subprocess.Popen[bytes]] = []
        from tests.integrations.celery import shop

        shop.app.conf.broker_url = self.url
        self.tasks = shop

    def command(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "celery", "-A", "tests.integrations.celery.shop", *words]

    def work(self, name: str, *words: str) -> subprocess.Popen[bytes]:
        log = (self.folder / f"{name}.log").open("wb")
        words = ("worker", "-n", f"{name}@test", "-c", "1", "-l", "INFO", *words)
        worker = subprocess.Popen(
            self.command(*words), env=self.environment, cwd=self.folder, stdout=log, stderr=log
        )
        self.workers.append(worker)
        self.until(lambda: b" ready." in (self.folder / f"{name}.log").read_bytes(), name)
        return worker

    def until(self, holds: Callable[[], Any], what: str) -> None:
        end = time.monotonic() + WAIT
        while not holds():
            assert time.monotonic() < end, f"{what}\n{self.logs()}"
            time.sleep(0.05)

    def logs(self) -> str:
        return "\n".join(each.read_text()[-3_000:] for each in self.folder.glob("*.log"))

    def lines(self, path: Path) -> list[str]:
        return path.read_text().splitlines() if path.exists() else []


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    with NodeThread() as node:
        shop = Shop(node, tmp_path_factory.mktemp("shop"))
        yield shop
        for worker in shop.workers:
            if worker.poll() is None:
                worker.terminate()
        for worker in shop.workers:
            worker.wait(WAIT)
        shop.tasks.app.backend.result_consumer.stop()
        shop.tasks.app.close()
        shop.tasks.app.pool.force_close_all()
        assert not shared_stations._stations


@pytest.fixture(scope="module", autouse=True)
def worker(shop: Shop) -> subprocess.Popen[bytes]:
    """The worker that all tests share."""
    return shop.work("first")


def test_results_come_back_and_groups_and_retries_work(shop: Shop) -> None:
    tasks = shop.tasks
    assert tasks.add.delay(2, 3).get(timeout=WAIT) == 5
    results = celery.group(tasks.add.s(number, number) for number in range(50))()
    assert results.get(timeout=WAIT) == [2 * number for number in range(50)]
    assert celery.chain(tasks.add.s(1, 2), tasks.add.s(3))().get(timeout=WAIT) == 6
    assert tasks.flaky.delay().get(timeout=WAIT) == 2


def test_a_countdown_waits_at_the_broker(shop: Shop) -> None:
    began = time.monotonic()
    later = shop.tasks.add.apply_async((1, 1), countdown=1.5)
    inspected = shop.tasks.app.control.inspect(["first@test"], timeout=1.0).scheduled()
    assert inspected == {"first@test": []}, "the worker has it already"
    assert later.get(timeout=WAIT) == 2
    assert time.monotonic() - began >= 1.4


def test_remote_control_reaches_every_worker(shop: Shop) -> None:
    second = shop.work("second", "-Q", "other")
    control = shop.tasks.app.control

    def names() -> set[str]:
        return {name for reply in control.ping(timeout=1.0) for name in reply}

    shop.until(lambda: names() == {"first@test", "second@test"}, "two workers answer")
    listed = subprocess.run(
        shop.command("inspect", "ping", "-d", "second@test", "--timeout", "20"),
        env=shop.environment,
        cwd=shop.folder,
        capture_output=True,
        text=True,
        timeout=WAIT,
    )
    assert "pong" in listed.stdout, listed.stderr
    doomed = shop.tasks.add.apply_async((1, 1), countdown=2)
    control.revoke(doomed.id)
    with pytest.raises(celery.exceptions.TaskRevokedError):
        doomed.get(timeout=WAIT)
    second.terminate()
    assert second.wait(WAIT) == 0
    assert names() == {"first@test"}


def test_the_task_of_a_worker_that_is_killed_is_done_by_another(shop: Shop, tmp_path: Path) -> None:
    path = tmp_path / "notes"
    killed = shop.work("killed", "-Q", "risky", "-P", "solo")
    result = shop.tasks.note.apply_async((str(path), 4.0), queue="risky")
    shop.until(lambda: len(shop.lines(path)) == 1, "the task begins")
    killed.send_signal(signal.SIGKILL)
    killed.wait(WAIT)
    shop.work("survivor", "-Q", "risky", "-P", "solo")
    assert result.get(timeout=WAIT)
    begun = [line for line in shop.lines(path) if line.startswith("begun")]
    assert len(set(begun)) == 2
    assert shop.lines(path).count("ended") == 1


@pytest.mark.skipif(not os.environ.get("SPROCKET_LONG"), reason="two workers: SPROCKET_LONG=1")
def test_a_warm_stop_ends_what_runs_and_gives_back_the_rest(shop: Shop, tmp_path: Path) -> None:
    path = tmp_path / "notes"
    stopped = shop.work("stopped", "-Q", "calm")
    results = [
        shop.tasks.note.apply_async((str(path), 1.0), queue="calm", acks_late=True)
        for _ in range(3)
    ]
    shop.until(lambda: shop.lines(path), "a task begins")
    stopped.terminate()
    assert stopped.wait(WAIT) == 0
    assert "ended" in shop.lines(path)
    before = len(shop.lines(path))
    assert before < 6
    shop.work("next", "-Q", "calm")
    assert all(each.get(timeout=WAIT) for each in results)
    assert shop.lines(path).count("ended") == 3
    assert len(shop.lines(path)) == 6, "a task ran twice"
