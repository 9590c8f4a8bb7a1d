"""The ready list, and that a poll visits only queues that have messages: by count."""

from __future__ import annotations

from sprocket.client.delivery.polled_messages import PolledMessages
from sprocket.client.delivery.ready_windows import ReadyWindows
from sprocket.client.fetching.pauses import Pauses
from sprocket.client.fetching.statistics import Counters
from sprocket.client.fetching.window import Window
from sprocket.testing.loop import simulate
from tests.client.fetching.test_window import stored


class CountingWindow(Window):
    """A window that counts how often it is compared with another."""

    compared = 0

    def __eq__(self, other: object) -> bool:
        CountingWindow.compared += 1
        return self is other

    __hash__ = object.__hash__


def windows(count: int) -> list[Window]:
    made: list[Window] = []
    for _ in range(count):
        window = CountingWindow(0)
        window.fetched([stored(0), stored(1)], 2)
        made.append(window)
    return made


def test_windows_come_in_turn_each_once_while_they_have_messages() -> None:
    ready, (first, second) = ReadyWindows(), windows(2)
    for window in (first, second, first):
        ready.add(window)
    assert [ready.next(), ready.next(), ready.next()] == [first, second, first]
    second.waiting.clear()
    assert [ready.next(), ready.next()] == [first, first]
    assert len(ready) == 1
    assert ready.take_window() is first
    assert not ready
    assert ready.take() is None


def test_a_window_that_is_dropped_is_not_searched_for_among_thousands() -> None:
    ready, made = ReadyWindows(), windows(2_000)
    for window in made:
        ready.add(window)
    CountingWindow.compared = 0
    for window in made:
        assert ready.next() is window
    for window in reversed(made):
        ready.drop(window)
    assert not ready
    assert CountingWindow.compared < len(made)


def test_a_poll_takes_in_turn_from_the_queues_that_have_messages() -> None:
    async def main() -> None:
        polled, pauses = PolledMessages(Counters("g")), Pauses()
        first, second = windows(2)
        polled.offer(first)
        polled.offer(second)
        taken = [len(polled.take(1, paused=pauses)) for _ in range(2)]
        assert taken == [1, 1]  # the messages of the first poll are not finished
        polled.finish()
        pauses.pause_all()
        assert polled.take(10, paused=pauses) == []
        pauses.resume_all()
        assert len(polled.take(10, paused=pauses)) == 3
        polled.finish()
        assert polled.take(10, paused=pauses) == []

    simulate(lambda network: main())
