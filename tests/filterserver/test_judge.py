"""A filter's process is a fake here, so that time is virtual; real ones are in `test_process`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from sprocket.base.errors import FilterFailed
from sprocket.filterserver import exchange
from sprocket.filterserver.exchange import Fault, FilterInput, Verdicts
from sprocket.filterserver.judge import Judge
from sprocket.filterserver.process import ProcessLost
from sprocket.filterserver.uploads import Uploaded
from sprocket.testing.loop import simulate

Rule = Callable[[int], bool]


class Machine:
    """Starts processes that judge by offset, and counts them."""

    def __init__(self, rule: Rule, *, seconds: float = 0.0, fault: Fault | None = None) -> None:
        self.rule = rule
        self.seconds = seconds
        self.fault = fault
        self.started = self.running = 0

    async def start(self) -> FakeProcess:
        self.started += 1
        self.running += 1
        return FakeProcess(self)


class FakeProcess:
    is_worn = False

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.batches = 0
        self.is_dead = False

    async def load(self, name: str, source: bytes) -> Fault | None:
        return self.machine.fault

    async def judge(self, batch: bytes, count: int) -> Verdicts:
        await asyncio.sleep(self.machine.seconds)
        wanted: list[bool] = []
        for part in exchange.batch_of(memoryview(batch))[2]:
            try:
                wanted.append(self.machine.rule(part.queue_offset))
            except ZeroDivisionError:
                self.batches += 1
                return Verdicts(wanted, Fault(3, 1, "ZeroDivisionError"))
        self.batches += 1
        return Verdicts(wanted)

    async def kill(self) -> None:
        if not self.is_dead:
            self.is_dead = True
            self.machine.running -= 1


def judge_of(machine: Machine, offs: list[str], **more: object) -> Judge:
    def off(uploaded: Uploaded, why: str) -> None:
        uploaded.off = why
        offs.append(why)

    uploaded = Uploaded("g", "t", "f", "1" * 16, "", 0, "")
    settings = {"failures_max": 3, "pause_ms": 1000.0, **more}
    return Judge(uploaded, machine.start, switch_off=off, **settings)  # type: ignore[arg-type]


def parts(*offsets: int) -> list[FilterInput]:
    return [FilterInput(offset, 0, 0, 0, b"", b"") for offset in offsets]


def play(test: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        await test()

    simulate(lambda network: main())


def test_one_process_judges_batch_after_batch() -> None:
    machine = Machine(lambda offset: offset % 2 == 0)

    async def test() -> None:
        judge = judge_of(machine, [])
        assert await judge.judge("t", 0, parts(0, 1, 2)) == [True, False, True]
        assert await judge.judge("t", 0, parts(3)) == [False]
        assert (machine.started, judge.judged, judge.wanted) == (1, 4, 2)

    play(test)


@pytest.mark.parametrize("kind", ["raises", "dies"])
def test_all_before_a_message_that_fails_is_judged_and_it_is_named_alone(kind: str) -> None:
    def rule(offset: int) -> bool:
        if offset == 5:
            raise ZeroDivisionError if kind == "raises" else ProcessLost("it ended: SIGSEGV")
        return True

    machine, offs = Machine(rule), list[str]()

    async def test() -> None:
        judge = judge_of(machine, offs)
        place, given = 0, parts(*range(9))
        while place < 5:
            place += len(await judge.judge("t", 2, given[place:]))
        assert place == 5
        with pytest.raises(FilterFailed, match="queue 2, offset 5"):
            await judge.judge("t", 2, given[place:])
        assert offs == []

    play(test)


def test_after_a_few_failures_in_a_row_it_is_switched_off_and_runs_no_more() -> None:
    def rule(offset: int) -> bool:
        raise ZeroDivisionError

    machine, offs, words = Machine(rule), list[str](), list[str]()

    async def test() -> None:
        judge = judge_of(machine, offs)
        for _ in range(5):
            with pytest.raises(FilterFailed) as caught:
                await judge.judge("t", 0, parts(0))
            words.append(caught.value.remark)
            await asyncio.sleep(10)
        assert offs == ["it failed 3 times at queue 0, offset 0: line 3, column 1: "
                        "ZeroDivisionError"]  # fmt: skip
        assert "is switched off" in words[2]
        assert words[3] == words[4] == f"{judge.uploaded.words} is switched off: {offs[0]}"
        assert machine.started == 3
        assert machine.running == 0

    play(test)


def test_failures_make_pauses_in_which_nothing_runs() -> None:
    def rule(offset: int) -> bool:
        raise ZeroDivisionError

    machine = Machine(rule)

    async def test() -> None:
        judge = judge_of(machine, [], failures_max=100)
        started = []
        for _ in range(40):
            with pytest.raises(FilterFailed):
                await judge.judge("t", 0, parts(0))
            started.append(machine.started)
            await asyncio.sleep(0.5)
        # 1 s, 2 s, 4 s, 8 s, 16 s between the tries of 20 s.
        assert machine.started == 5

    play(test)


def test_success_between_failures_keeps_it_switched_on() -> None:
    broken = [True]

    def rule(offset: int) -> bool:
        if offset and broken[0]:
            raise ProcessLost("gone")
        return True

    machine, offs = Machine(rule), list[str]()

    async def test() -> None:
        judge = judge_of(machine, offs)
        for _ in range(6):
            broken[0] = True
            with pytest.raises(FilterFailed):
                await judge.judge("t", 0, parts(1))
            await asyncio.sleep(100)
            broken[0] = False
            assert await judge.judge("t", 0, parts(1, 2))
        assert offs == []

    play(test)


def test_a_failure_in_a_used_process_is_tried_again_in_a_fresh_one() -> None:
    process_age: dict[str, int] = {"batches": 0}

    def rule(offset: int) -> bool:
        process_age["batches"] += 1
        if process_age["batches"] == 4:  # what grew in that process
            process_age["batches"] = -100
            raise ProcessLost("MemoryError")
        return True

    machine, offs = Machine(rule), list[str]()

    async def test() -> None:
        judge = judge_of(machine, offs)
        got = []
        for offset in range(9):
            got += await judge.judge("t", 0, parts(offset))
        assert got == [True] * 9
        assert machine.started == 2

    play(test)


def test_a_source_that_no_longer_loads_is_a_failure() -> None:
    machine = Machine(lambda offset: True, fault=Fault(1, 1, "SyntaxError"))

    async def test() -> None:
        judge = judge_of(machine, [])
        with pytest.raises(FilterFailed, match="at its start: line 1, column 1: SyntaxError"):
            await judge.judge("t", 0, parts(0))
        assert machine.running == 0

    play(test)


def test_a_pull_that_goes_away_leaves_the_process_in_order() -> None:
    machine = Machine(lambda offset: offset > 0, seconds=1.0)

    async def test() -> None:
        judge = judge_of(machine, [])
        first = asyncio.create_task(judge.judge("t", 0, parts(0)))
        await asyncio.sleep(0.5)
        first.cancel()
        assert await judge.judge("t", 0, parts(1)) == [True]
        assert machine.started == 1

    play(test)


def test_nothing_runs_after_the_end() -> None:
    machine = Machine(lambda offset: True, seconds=1.0)

    async def test() -> None:
        judge = judge_of(machine, [])
        waiting = asyncio.create_task(judge.judge("t", 0, parts(0)))
        behind = asyncio.create_task(judge.judge("t", 0, parts(0)))
        await asyncio.sleep(0.5)
        await judge.close()
        results = await asyncio.gather(waiting, behind, return_exceptions=True)
        assert isinstance(results[1], FilterFailed)
        assert machine.running == 0

    play(test)
