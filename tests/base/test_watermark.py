"""The one way to wait."""

from __future__ import annotations

import asyncio
import traceback

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sprocket.base.deadline import Deadline
from sprocket.base.watermark import Watermark
from tests.support import run


def test_what_is_reached_already_needs_no_waiting() -> None:
    async def main() -> bool:
        return await Watermark(7).reach(7, Deadline(0.0))

    assert run(main()) is True


def test_rising_wakes_whoever_is_reached_and_nobody_else() -> None:
    async def main() -> None:
        mark = Watermark()
        near = asyncio.ensure_future(mark.reach(3, Deadline.after(60)))
        far = asyncio.ensure_future(mark.reach(9, Deadline.after(60)))
        await asyncio.sleep(0)
        mark.rise(5)
        assert await near is True
        assert not far.done()
        assert mark.waiting == 1
        mark.rise(9)
        assert await far is True

    run(main())


def test_a_lower_value_changes_nothing() -> None:
    mark = Watermark(5)
    mark.rise(3)
    assert mark.value == 5


def test_a_passed_deadline_is_false_and_leaves_no_waiter() -> None:
    async def main() -> None:
        mark = Watermark()
        assert await mark.reach(1, Deadline.after(0.001)) is False
        assert await mark.reach(1, Deadline.after(-1)) is False
        assert mark.waiting == 0
        assert not mark._waiting

    run(main())


def test_a_cancelled_waiter_is_forgotten() -> None:
    async def main() -> None:
        mark = Watermark()
        waiter = asyncio.ensure_future(mark.reach(1, Deadline.never()))
        await asyncio.sleep(0)
        waiter.cancel()
        await asyncio.wait([waiter])
        assert not mark._waiting

    run(main())


def test_a_failed_mark_keeps_nothing_of_who_asked() -> None:
    async def main() -> None:
        mark = Watermark()
        mark.fail(OSError("disk"))
        frames = []
        for _ in range(2):
            with pytest.raises(OSError, match="disk") as seen:
                await mark.reach(1, Deadline.never())
            frames.append(sum(1 for _ in traceback.walk_tb(seen.value.__traceback__)))
        assert frames[0] == frames[1]

    run(main())


def test_failing_ends_all_waiting_now_and_later() -> None:
    async def main() -> None:
        mark = Watermark(2)
        waiter = asyncio.ensure_future(mark.reach(3, Deadline.never()))
        await asyncio.sleep(0)
        mark.fail(OSError("disk"))
        with pytest.raises(OSError, match="disk"):
            await waiter
        with pytest.raises(OSError, match="disk"):
            await mark.reach(3, Deadline.never())
        assert await mark.reach(2, Deadline.never()) is True

    run(main())


def test_many_that_gave_up_do_not_pile_up() -> None:
    async def main() -> None:
        mark = Watermark()
        for target in range(1, 200):
            await mark.reach(target, Deadline.after(0))
            waiter = asyncio.ensure_future(mark.reach(target, Deadline.never()))
            await asyncio.sleep(0)
            waiter.cancel()
            await asyncio.wait([waiter])
        assert len(mark._waiting) < 3

    run(main())


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.integers(1, 20), max_size=12),
    st.lists(st.integers(0, 25), max_size=8),
)
def test_waiters_are_done_exactly_when_their_target_is_reached(
    targets: list[int], values: list[int]
) -> None:
    async def main() -> None:
        mark = Watermark()
        waiters = [asyncio.ensure_future(mark.reach(t, Deadline.never())) for t in targets]
        await asyncio.sleep(0)
        highest = 0
        for value in values:
            mark.rise(value)
            highest = max(highest, value)
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            assert mark.value == highest
            assert [w.done() for w in waiters] == [t <= highest for t in targets]
        for waiter in waiters:
            waiter.cancel()

    run(main())


@pytest.mark.timeout(60)
def test_very_many_that_give_up_beside_others_that_stay_cost_no_look_at_all_for_each() -> None:
    """With a look at all waiters for each that gives up this takes minutes."""

    async def main() -> None:
        mark = Watermark()
        stay = [asyncio.ensure_future(mark.reach(2, Deadline.never())) for _ in range(30_000)]
        leave = [asyncio.ensure_future(mark.reach(1, Deadline.never())) for _ in range(25_000)]
        await asyncio.sleep(0)
        for each in leave:
            each.cancel()
        await asyncio.gather(*leave, return_exceptions=True)
        assert mark.waiting == len(stay)
        mark.rise(2)
        assert all(await asyncio.gather(*stay))

    run(main())
