from __future__ import annotations

import asyncio

from sprocket.client.fetching.window import FetchLimits
from sprocket.client.popping.popped_window import PoppedWindow
from sprocket.message.popped_message import PoppedMessage
from tests.client.fakes import play
from tests.clientcore.test_pops import message


def window(acked: list[PoppedMessage], count: int = 4, size: int = 1000) -> PoppedWindow:
    return PoppedWindow(FetchLimits(count, size), acked.append)


def test_each_message_is_acknowledged_once_and_by_itself() -> None:
    acked: list[PoppedMessage] = []
    one = window(acked)
    messages = [message(0, n) for n in range(3)]
    one.arrived(messages)
    assert (one.count, one.in_flight, one.bytes) == (3, 0, 3)
    taken = [one.take(), one.take()]
    assert (one.count, one.in_flight) == (3, 2)
    assert one.taken() == messages[:2]
    for each in (messages[1], messages[1]):
        one.done(each)
    assert acked == [messages[1]]
    assert not one.holds(messages[1])
    one.put_back([each for each in taken if each is not None])
    assert list(one.waiting) == [messages[0], messages[2]], "what is done is not put back"


def test_a_retried_message_and_one_of_the_topic_may_have_one_offset() -> None:
    acked: list[PoppedMessage] = []
    one = window(acked)
    first, second = message(0, 0), message(0, 0, kind="1")
    one.arrived([first, second])
    one.done(first)
    assert one.holds(second)
    assert one.unfinished == [second]


def test_limits_are_of_count_and_bytes_and_room_is_reported() -> None:
    told: list[int] = []
    one = window([], count=2)
    one.arrived([message(0, 0)])
    assert one.full_by is None
    one.arrived([message(0, 1)])
    assert one.full_by == "count"
    one.call_with_room(lambda: told.append(1))
    first = one.take()
    assert first is not None
    one.discard(first)
    assert told == [1]
    small = window([], size=1)
    small.arrived([message(0, 0)])
    assert small.full_by == "bytes"


def test_what_is_lost_is_neither_delivered_nor_acknowledged() -> None:
    acked: list[PoppedMessage] = []
    one = window(acked)
    messages = [message(0, n) for n in range(2)]
    one.arrived(messages)
    one.lost(messages[1])
    assert list(one.waiting) == messages[:1]
    one.take()
    one.lost(messages[0])
    one.done(messages[0])
    assert acked == []


def test_an_acknowledgement_waits_for_a_change_of_the_handle() -> None:
    async def main() -> None:
        acked: list[PoppedMessage] = []
        one = window(acked)
        each = message(0, 0)
        one.arrived([each])
        one.take()
        end = one.begin_change(each)
        one.done(each)
        await asyncio.sleep(0.1)
        assert acked == []
        end()
        await asyncio.sleep(0.1)
        assert acked == [each]
        assert one.changing(each) is None

    play(main)


def test_a_closed_window_holds_nothing() -> None:
    acked: list[PoppedMessage] = []
    one = window(acked)
    each = message(0, 0)
    one.arrived([each])
    one.close()
    one.done(each)
    assert (one.count, one.bytes, acked) == (0, 0, [])
