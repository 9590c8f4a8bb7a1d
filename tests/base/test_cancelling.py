"""Tasks that are cancelled at once, and the coroutines inside of them."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable

import pytest

from sprocket.base.cancelling import cancel_begun, close_unbegun, end_all
from tests.support import run


def test_what_a_cancelled_task_was_given_has_begun_and_undoes_what_it_did(
    recwarn: pytest.WarningsRecorder,
) -> None:
    # A coroutine that never runs is reported by Python as one that nobody awaited.
    async def main() -> None:
        undone: list[str] = []

        async def inner() -> None:
            try:
                await asyncio.Event().wait()
            finally:
                undone.append("inner")

        async def outer(work: Awaitable[None]) -> None:
            await work

        task = asyncio.ensure_future(outer(inner()))
        cancel_begun(task)
        await asyncio.wait([task])
        assert task.cancelled()
        assert undone == ["inner"]

    run(main())
    gc.collect()
    assert not recwarn.list


def test_what_never_begins_is_closed_with_all_that_it_was_given(
    recwarn: pytest.WarningsRecorder,
) -> None:
    async def main() -> None:
        begun: list[str] = []

        async def work(name: str, inner: Awaitable[None] | None = None) -> None:
            begun.append(name)
            await (inner or asyncio.Event().wait())

        close_unbegun(work("first", work("second", work("third"))))
        assert not begun

        begins = work("outer", work("inner"))
        task = asyncio.ensure_future(begins)
        await asyncio.sleep(0)
        close_unbegun(begins)
        assert begun == ["outer", "inner"]
        assert not task.done()
        close_unbegun(work("of a task", task))
        assert not task.done()
        task.cancel()

    gc.collect()
    recwarn.clear()  # of what tests before this one left
    run(main())
    gc.collect()
    assert not recwarn.list


def test_a_task_that_is_over_stays_as_it_is() -> None:
    async def main() -> None:
        task = asyncio.ensure_future(asyncio.sleep(0, "done"))
        assert await task == "done"
        cancel_begun(task)
        await asyncio.sleep(0)
        assert task.result() == "done"

    run(main())


def test_all_tasks_have_ended_and_are_forgotten() -> None:
    async def main() -> None:
        ended: list[int] = []

        async def work(number: int) -> None:
            try:
                await asyncio.Event().wait()
            finally:
                await asyncio.sleep(0)
                ended.append(number)

        tasks = [asyncio.ensure_future(work(number)) for number in range(3)]
        await asyncio.sleep(0)
        await end_all(tasks)
        assert sorted(ended) == [0, 1, 2]
        assert not tasks

    run(main())
