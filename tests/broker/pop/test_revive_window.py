"""The window over a revive queue, against a plain model of what comes again."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sprocket.broker.pop.revive_window import ReviveWindow
from sprocket.protocol.bodies.pop import AckRecord, CheckPoint


def point(start: int, due_ms: int, count: int = 2) -> CheckPoint:
    return CheckPoint(
        group="g", topic="t", start_offset=start, pop_ms=0, invisible_ms=due_ms, count=count,
        diffs=list(range(count)),
    )  # fmt: skip


def ack(start: int, *offsets: int) -> AckRecord:
    return AckRecord(group="g", topic="t", start_offset=start, offset=-1, offsets=list(offsets))


def read_all(window: ReviveWindow, queue: list[CheckPoint | AckRecord | None]) -> None:
    while window.next_offset < len(queue):
        window.take(window.next_offset, queue[window.next_offset])


def revived(window: ReviveWindow, queue: list[CheckPoint | AckRecord | None]) -> list[int]:
    """The messages that come again until all are due."""
    found: list[int] = []
    while True:
        read_all(window, queue)
        pop = window.first_due(1 << 40)
        if pop is None:
            return found
        found += pop.left
        window.done(pop)


def test_what_is_acknowledged_does_not_come_again() -> None:
    window = ReviveWindow("b", 0)
    queue = [point(0, 100), point(2, 50), ack(0, 1), ack(2, 2, 3), ack(9, 9), None]
    read_all(window, queue)
    assert window.done_offset == -1
    assert window.first_due(99) is None
    found = window.first_due(100)
    assert found is not None
    assert list(found.left) == [0]
    window.done(found)
    assert window.first_due(1000) is None
    assert window.done_offset == 5


def test_the_earliest_comes_first_and_one_far_ahead_holds_none_back() -> None:
    window = ReviveWindow("b", 7)
    for at, each in enumerate([point(0, 10_000), point(2, 300), point(4, 200)], 7):
        window.take(at, each)
    assert window.next_ms == 200
    for start in (4, 2):
        found = window.first_due(500)
        assert found is not None
        assert found.key.start_offset == start
        window.done(found)
    assert window.first_due(500) is None
    assert window.done_offset == 6  # the first one is still open


def test_a_check_point_read_twice_is_one() -> None:
    window = ReviveWindow("b", 0)
    queue = [point(0, 5), point(0, 5)]
    assert revived(window, queue) == [0, 1]


@given(
    st.lists(st.tuples(st.integers(0, 20), st.integers(1, 4)), max_size=12),
    st.lists(
        st.tuples(st.integers(0, 11), st.integers(0, 3), st.integers(0, 1 << 20)), max_size=40
    ),
    st.integers(1, 5),
)
def test_a_small_window_revives_what_a_large_one_does(
    points: list[tuple[int, int]], acks: list[tuple[int, int, int]], open_max: int
) -> None:
    queue: list[CheckPoint | AckRecord | None] = [
        point(number * 10, due_ms, count) for number, (due_ms, count) in enumerate(points)
    ]
    done = set()
    for number, nth, at in acks:
        if number < len(points) and nth < points[number][1]:
            where = next(
                i for i, each in enumerate(queue) if each == point(number * 10, *points[number])
            )
            queue.insert(where + 1 + at % (len(queue) - where), ack(number * 10, number * 10 + nth))
            done.add(number * 10 + nth)
    window = ReviveWindow("b", 0, open_max=open_max)
    found = revived(window, queue)
    assert sorted(found) == sorted(
        number * 10 + nth
        for number, (_, count) in enumerate(points)
        for nth in range(count)
        if number * 10 + nth not in done
    )
    assert window.done_offset == len(queue) - 1
    assert len(window) == 0
