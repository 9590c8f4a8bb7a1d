from __future__ import annotations

import asyncio

from sprocket.filterserver.exchange import Fault
from sprocket.filterserver.judge import Judge, Runner
from sprocket.filterserver.judges import Judges
from sprocket.filterserver.process import ProcessLimits
from sprocket.filterserver.uploads import Uploaded
from tests.filterserver.test_judge import Machine, parts, play


def judges_of(machine: Machine, processes_max: int) -> Judges:
    async def start(bounds: ProcessLimits) -> Runner:
        return await machine.start()

    return Judges(
        processes_max,
        ProcessLimits(),
        failures_max=3,
        switch_off=lambda each, why: None,
        start=start,
    )


def judge_of(judges: Judges, name: str) -> Judge:
    return judges.of(Uploaded("g", "t", name, "1" * 16, "", 0, ""))


def test_no_more_processes_run_than_are_allowed_and_every_filter_has_its_turn() -> None:
    most = 0

    def rule(offset: int) -> bool:
        nonlocal most
        most = max(most, machine.running)
        return True

    machine = Machine(rule, seconds=0.1)

    async def test() -> None:
        judges = judges_of(machine, 2)
        all_of_them = [judge_of(judges, f"f{n}") for n in range(6)]

        async def keep(judge: Judge) -> int:
            for offset in range(10):
                await judge.judge("t", 0, parts(offset))
            return judge.judged

        async with asyncio.timeout(60):
            judged = await asyncio.gather(*map(keep, all_of_them))
        assert judged == [10] * 6
        assert most <= 2
        await judges.close()
        assert machine.running == 0

    play(test)


def test_a_filter_that_rests_gives_its_process_to_one_that_needs_it() -> None:
    machine = Machine(lambda offset: True)

    async def test() -> None:
        judges = judges_of(machine, 2)
        first, second, third = (judge_of(judges, name) for name in "abc")
        for judge in (first, second, third):
            await judge.judge("t", 0, parts(0))
            await asyncio.sleep(1)
        assert [judge.is_running for judge in (first, second, third)] == [False, True, True]
        assert judges.running == 2

    play(test)


def test_processes_of_filters_that_nobody_asks_end() -> None:
    machine = Machine(lambda offset: True)

    async def test() -> None:
        judges = judges_of(machine, 2)
        looking = asyncio.create_task(judges.run())
        await judge_of(judges, "a").judge("t", 0, parts(0))
        await asyncio.sleep(30)
        assert machine.running == 1
        await asyncio.sleep(60)
        assert machine.running == 0
        looking.cancel()

    play(test)


def test_trying_out_tells_what_is_wrong_and_leaves_nothing() -> None:
    machine = Machine(lambda offset: True, fault=Fault(2, 3, "SyntaxError"))

    async def test() -> None:
        judges = judges_of(machine, 1)
        for _ in range(3):
            assert await judges.try_out("f", b"") == Fault(2, 3, "SyntaxError")
        assert machine.running == 0

    play(test)


def test_a_version_that_is_gone_runs_no_more() -> None:
    machine = Machine(lambda offset: True)

    async def test() -> None:
        judges = judges_of(machine, 1)
        uploaded = Uploaded("g", "t", "f", "1" * 16, "", 0, "")
        await judges.of(uploaded).judge("t", 0, parts(0))
        await judges.forget(uploaded)
        assert machine.running == 0
        assert judges.known(uploaded) is None

    play(test)
