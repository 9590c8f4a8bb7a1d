"""What a parent does with its processes, in virtual time."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Awaitable, Callable

import pytest

from sprocket.base.errors import UsageError
from sprocket.container.children import ChildFailed, ChildSpec
from sprocket.container.supervisor import Supervisor, ended_by
from sprocket.testing.loop import simulate
from tests.container.world import PlayedLauncher, specs


def play(
    history: Callable[[Supervisor, PlayedLauncher], Awaitable[None]],
    launcher: PlayedLauncher | None = None,
) -> PlayedLauncher:
    """Plays a history of a supervisor; its launcher."""
    launcher = launcher or PlayedLauncher()

    async def main(network: object) -> None:
        supervisor = Supervisor(launcher, stop_seconds=20)
        await history(supervisor, launcher)
        await supervisor.stop()
        alive = [each for started in launcher.started.values() for each in started]
        assert not any(each.is_running for each in alive)

    simulate(main)
    return launcher


def test_all_run_and_stop_in_order() -> None:
    async def history(supervisor: Supervisor, launcher: PlayedLauncher) -> None:
        await supervisor.start(specs("a", "b", "c"))
        assert set(supervisor.running) == {"a", "b", "c"}
        assert supervisor.troubles == {}

    launcher = play(history)
    assert launcher.times("a") == launcher.times("b") == launcher.times("c") == [0.0]
    assert all(launcher.now(name).asked for name in "abc")


def test_one_that_is_killed_comes_back_and_the_others_go_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def history(supervisor: Supervisor, launcher: PlayedLauncher) -> None:
        await supervisor.start(specs("a", "b"))
        launcher.now("a").kill()
        await asyncio.sleep(0.1)
        assert set(supervisor.running) == {"b"}
        assert supervisor.troubles == {"a": "it ended by SIGKILL"}
        await asyncio.sleep(5)
        assert set(supervisor.running) == {"a", "b"}

    launcher = play(history)
    assert [len(launcher.started[name]) for name in "ab"] == [2, 1]
    assert [r.message for r in caplog.records] == [
        "a ended by SIGKILL, and is started again", "a runs again",
    ]  # fmt: skip


def test_one_that_cannot_start_is_reported_once_and_tried_ever_more_rarely(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def history(supervisor: Supervisor, launcher: PlayedLauncher) -> None:
        launcher.faults["b"] = "the port is taken"
        await supervisor.start(specs("a", "b"))
        assert set(supervisor.running) == {"a"}
        await asyncio.sleep(3600)
        assert supervisor.troubles == {"b": "the port is taken"}
        assert len([r for r in caplog.records if r.levelno == logging.ERROR]) == 1
        launcher.faults["b"] = "the store is damaged"
        await asyncio.sleep(3600)
        assert len([r for r in caplog.records if r.levelno == logging.ERROR]) == 2
        del launcher.faults["b"]
        await asyncio.sleep(70)
        assert set(supervisor.running) == {"a", "b"}

    times = play(history).times("b")
    assert times[:6] == [0.0, 1.5, 3.5, 6.5, 11.5, 20.5], "a second each, and the pauses"
    assert max(b - a for a, b in itertools.pairwise(times)) == 61.0


def test_if_none_can_start_the_start_fails_with_the_reason_and_leaves_nothing() -> None:
    async def history(supervisor: Supervisor, launcher: PlayedLauncher) -> None:
        launcher.faults |= {"a": "no such setting", "b": "no such setting"}
        with pytest.raises(ChildFailed, match="no such setting"):
            await supervisor.start(specs("a", "b"))

    play(history)


def test_those_of_a_higher_rank_start_after_the_others_and_stop_before_them() -> None:
    async def history(supervisor: Supervisor, launcher: PlayedLauncher) -> None:
        await supervisor.start([*specs("proxy", rank=1), *specs("a", "b")])
        stopping = asyncio.ensure_future(supervisor.stop())
        launcher.now("proxy").hangs = True
        await asyncio.sleep(1)
        assert launcher.now("proxy").asked
        assert not launcher.now("a").asked
        launcher.now("proxy").end(0)
        await stopping
        assert launcher.now("a").asked

    assert play(history).times("proxy") == [1.0]


def test_one_that_does_not_end_in_time_is_killed() -> None:
    async def history(supervisor: Supervisor, launcher: PlayedLauncher) -> None:
        await supervisor.start(specs("a"))
        before = asyncio.get_running_loop().time()
        await supervisor.stop()
        assert asyncio.get_running_loop().time() - before == 20
        assert not launcher.now("a").is_running

    play(history, PlayedLauncher(hangs=True))


def test_a_stop_during_a_start_or_a_pause_starts_nothing_more() -> None:
    async def history(supervisor: Supervisor, launcher: PlayedLauncher) -> None:
        launcher.faults["b"] = "broken"
        await supervisor.start(specs("a", "b"))
        launcher.now("a").kill()
        await asyncio.sleep(0.6)  # a starts, b pauses
        await supervisor.stop()
        tried = len(launcher.starts)
        await asyncio.sleep(600)
        assert len(launcher.starts) == tried

    play(history)


def test_one_is_added_and_removed_while_the_others_run() -> None:
    async def history(supervisor: Supervisor, launcher: PlayedLauncher) -> None:
        await supervisor.start(specs("a"))
        await supervisor.add(specs("b")[0])
        with pytest.raises(UsageError, match="b runs here already"):
            await supervisor.add(specs("b")[0])
        assert await supervisor.remove("b")
        assert not await supervisor.remove("b")
        launcher.faults["c"] = "no such file"
        with pytest.raises(ChildFailed, match="no such file"):
            await supervisor.add(specs("c")[0])
        await asyncio.sleep(600)
        assert set(supervisor.running) == {"a"}
        assert launcher.times("c") == launcher.times("c")[:1], "it is not tried again"

    play(history)


def test_what_is_to_be_done_before_a_start_is_done_before_each() -> None:
    done: list[str] = []

    async def history(supervisor: Supervisor, launcher: PlayedLauncher) -> None:
        await supervisor.start([ChildSpec("a", (), prepare=lambda: done.append("a"))])
        launcher.now("a").kill()
        await asyncio.sleep(5)
        assert done == ["a", "a"]

    play(history)


def test_ends_are_told_in_words() -> None:
    assert ended_by(0) == "with code 0"
    assert ended_by(-9) == "by SIGKILL"
    assert ended_by(-1000) == "by signal 1000"
