from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from sprocket.client.fetching.window import FetchLimits, Window
from sprocket.message.message import StoredMessage
from sprocket.message.offsets import LogOffset, QueueOffset
from sprocket.message.queue import QueueId


def stored(offset: int, size: int = 10, topic: str = "t") -> StoredMessage:
    return StoredMessage(
        queue=QueueId(topic, "a", 0),
        queue_offset=QueueOffset(offset),
        log_offset=LogOffset(offset * 100),
        body=b"x" * size,
        as_read={},
        flag=0,
        sys_flag=0,
        born_ms=0,
        born_host="",
        stored_ms=0,
        store_host="",
        reconsume_times=0,
        prepared_offset=0,
        record_bytes=100,
        body_crc=0,
    )


def filled(*offsets: int, limits: FetchLimits | None = None) -> Window:
    window = Window(offsets[0], limits)
    window.fetched([stored(offset) for offset in offsets], offsets[-1] + 1)
    return window


def taken(window: Window) -> StoredMessage:
    message = window.take()
    assert message is not None
    return message


def test_committable_offset_waits_for_the_first_message_that_is_not_done() -> None:
    window = filled(5, 6, 7)
    first, second, third = (taken(window) for _ in range(3))
    window.done(third)
    window.done(second)
    assert window.committable == 5
    window.done(first)
    assert window.committable == 8


def test_what_the_broker_left_out_counts_as_done_once_nothing_is_held() -> None:
    window = Window(5)
    window.fetched([stored(7)], 20)
    assert window.committable == 7
    window.done(taken(window))
    assert window.committable == 20


def test_messages_fetched_twice_are_taken_in_once() -> None:
    window = filled(5, 6)
    assert window.fetched([stored(5), stored(6), stored(7)], 8) == 1
    assert window.count == 3


def test_a_broker_that_points_back_does_not_move_the_window_back() -> None:
    window = filled(5, 6)
    window.fetched([], 0)
    assert window.next_offset == 7


def test_fetching_stops_at_the_count() -> None:
    window = filled(*range(3), limits=FetchLimits(count_max=3))
    assert not window.has_room
    window.done(taken(window))
    assert window.has_room


def test_fetching_stops_at_the_bytes() -> None:
    window = filled(0, 1, limits=FetchLimits(bytes_max=20))
    assert not window.has_room


def test_fetching_stops_when_one_message_holds_up_a_long_span() -> None:
    window = filled(*range(5), limits=FetchLimits(span_max=3))
    messages = [taken(window) for _ in range(5)]
    for message in messages[2:]:
        window.done(message)
    assert not window.has_room
    window.done(messages[0])
    assert window.has_room


def test_unmatched_messages_do_not_stretch_the_span() -> None:
    window = Window(0, FetchLimits(span_max=10))
    window.fetched([stored(0)], 100_000)
    assert window.has_room


def test_an_empty_window_has_room_whatever_one_message_weighs() -> None:
    window = Window(0, FetchLimits(bytes_max=1))
    window.fetched([stored(0, size=100)], 1)
    assert not window.has_room
    window.done(taken(window))
    assert window.has_room


def test_room_is_told_once() -> None:
    window = filled(0, 1, 2, limits=FetchLimits(count_max=2))
    calls: list[str] = []
    window.call_with_room(lambda: calls.append("room"))
    for _ in range(3):
        window.done(taken(window))
    assert calls == ["room"]


def test_what_is_put_back_comes_next_in_its_order() -> None:
    window = filled(0, 1, 2)
    window.put_back([taken(window), taken(window)])
    assert [taken(window).queue_offset for _ in range(3)] == [0, 1, 2]


def test_a_hand_out_of_many_has_one_topic() -> None:
    window = Window(0)
    window.fetched([stored(0, topic="t"), stored(1, topic="t"), stored(2, topic="u")], 3)
    assert [m.queue_offset for m in window.take_many(10, "t")] == [0, 1]
    assert [m.queue_offset for m in window.take_many(10, "u")] == [2]


def test_a_closed_window_keeps_its_position_and_ignores_late_results() -> None:
    window = filled(5, 6, 7)
    late = taken(window)
    window.close()
    window.done(late)
    window.put_back([late])
    assert window.fetched([stored(8)], 9) == 0
    assert window.committable == 5
    assert window.take() is None
    window.validate()


class Consumption(RuleBasedStateMachine):
    """Any order of pulls, hand-outs, put-backs and ends."""

    def __init__(self) -> None:
        super().__init__()
        self.window = Window(0, FetchLimits(count_max=6, bytes_max=60, span_max=8))
        self.out: list[StoredMessage] = []
        self.unfinished: set[int] = set()
        self.committed = 0

    @precondition(lambda self: self.window.has_room)
    @rule(gaps=st.lists(st.integers(0, 3), max_size=4), behind=st.integers(0, 5))
    def fetch(self, gaps: list[int], behind: int) -> None:
        offset = self.window.next_offset - 1
        messages = []
        for gap in gaps:
            offset += 1 + gap
            messages.append(stored(offset))
        self.window.fetched(messages, offset + 1 + behind)
        self.unfinished |= {message.queue_offset for message in messages}

    @rule(count=st.integers(1, 3))
    def take(self, count: int) -> None:
        self.out += self.window.take_many(count, "t")

    @precondition(lambda self: self.out)
    @rule(data=st.data())
    def finish(self, data: st.DataObject) -> None:
        message = self.out.pop(data.draw(st.integers(0, len(self.out) - 1)))
        self.window.done(message)
        self.unfinished.discard(message.queue_offset)

    @precondition(lambda self: self.out)
    @rule()
    def put_back(self) -> None:
        self.window.put_back([self.out.pop()])

    @invariant()
    def nothing_unfinished_is_passed(self) -> None:
        self.window.validate()
        assert self.window.committable >= self.committed
        self.committed = self.window.committable
        assert all(offset >= self.committed for offset in self.unfinished)
        assert self.window.count == len(self.unfinished)
        assert self.window.in_flight == len(self.out)


TestConsumption = Consumption.TestCase
TestConsumption.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
