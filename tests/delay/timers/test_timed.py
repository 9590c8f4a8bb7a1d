"""Times that senders ask for, and what becomes of their messages."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sprocket.base.errors import CorruptRecord, IllegalMessage
from sprocket.delay.timers.timed import (
    TimerLimits,
    asks_for_time,
    delay_until,
    delivered,
    handle_of,
    key_of,
    recall_of,
    rolled,
    slot_of,
    wait_of,
    waiting,
    whole_number,
)
from sprocket.message.properties import decode_bytes
from sprocket.message.recall import RecallHandle
from sprocket.message.record import Draft, Encoder, Record, parse, topic_part

NOW_MS = 1_700_000_000_123
LIMITS = TimerLimits(1000, 3 * 86_400_000)
HOST = bytes([127, 0, 0, 1, 0, 0, 42, 159])


def draft(topic: str = "T") -> Draft:
    return Draft(topic, 3, b"body", b"", 0, 0, 0, 1, HOST)


def waiting_with(properties: dict[str, str], now_ms: int = NOW_MS) -> dict[str, str]:
    """The properties of a message to queue 3 of T while it waits."""
    wait = wait_of(properties, LIMITS, now_ms=now_ms)
    assert wait is not None
    return delay_until(properties, wait, topic="T", queue_number=3)


def kept(properties: dict[str, str], topic: str = "rmq_sys_wheel_timer") -> Record:
    """A record with those properties, at log offset 500."""
    text = "".join(f"{name}\x01{value}\x02" for name, value in properties.items())
    made = Draft(topic, 0, b"body", text.encode(), 0, 7, 0, 1, HOST)
    encoded = Encoder(HOST).encode(
        made, topic_part(topic.encode()), log_offset=500, queue_offset=4, stored_ms=9
    )
    return parse(encoded)


@given(st.integers(1, 10**15), st.sampled_from([10, 100, 1000, 60_000]))
def test_a_time_lies_behind_the_beginning_of_its_slot_and_not_behind_its_end(
    due_ms: int, width_ms: int
) -> None:
    slot_ms = slot_of(due_ms, width_ms)
    assert slot_ms % width_ms == 0
    assert slot_ms < due_ms <= slot_ms + width_ms
    java = due_ms - width_ms if due_ms % width_ms == 0 else due_ms // width_ms * width_ms
    assert slot_ms == java


@given(st.integers(1, LIMITS.delay_ms_max))
def test_a_message_waits_with_its_time_and_its_place(delay_ms: int) -> None:
    asked = {"TIMER_DELAY_MS": str(delay_ms)}
    properties = waiting_with(asked)
    assert asked == {"TIMER_DELAY_MS": str(delay_ms)}, "what came in stays as it is"
    assert (properties["REAL_TOPIC"], properties["REAL_QID"]) == ("T", "3")
    known = waiting(properties, (4, 500, 91), width_ms=1000)
    assert known is not None
    assert (known.due_ms, known.topic, known.is_recall) == (NOW_MS + delay_ms, "T", False)
    assert known.slot_ms == slot_of(NOW_MS + delay_ms, 1000)


@pytest.mark.parametrize("wish", [
    {"TIMER_DELIVER_MS": str(NOW_MS)}, {"TIMER_DELAY_SEC": "0"}, {"TIMER_DELAY_MS": "-1"},
])  # fmt: skip
def test_a_message_whose_time_has_come_stays_what_it_is(wish: dict[str, str]) -> None:
    assert wait_of(wish, LIMITS, now_ms=NOW_MS) is None


@pytest.mark.parametrize("wish", [
    {"TIMER_DELIVER_MS": "x"}, {"TIMER_DELAY_SEC": "259201"}, {"TIMER_DELAY_MS": "9" * 30},
    {"TIMER_DELAY_MS": "1.5"}, {"TIMER_DELAY_SEC": "²"},
    {"TIMER_DELIVER_MS": "5", "TIMER_DEL_UNIQKEY": "T+1"},
])  # fmt: skip
def test_a_time_that_cannot_be_is_refused_with_javas_words(wish: dict[str, str]) -> None:
    with pytest.raises(IllegalMessage, match="max delay 259200000ms"):
        wait_of(wish, LIMITS, now_ms=NOW_MS)


def test_what_has_waited_does_not_wait_again() -> None:
    assert asks_for_time("T", {"TIMER_DELAY_MS": "1"})
    assert not asks_for_time("T", {"TIMER_DELAY_MS": "1", "TIMER_OUT_MS": "1"})
    assert not asks_for_time("rmq_sys_wheel_timer", {"TIMER_DELAY_MS": "1"})
    assert not asks_for_time("T", {})


@pytest.mark.parametrize("told", [{}, {"TIMER_DELIVER_MS": "999"}, {"TIMER_DELIVER_MS": "x"},
                                  {"TIMER_DELIVER_MS": str(NOW_MS * 2)}])  # fmt: skip
def test_a_record_that_tells_no_time_within_its_slot_is_due_at_the_end(
    told: dict[str, str],
) -> None:
    known = waiting({"TIMER_OUT_MS": "5000", **told}, (0, 0, 91), width_ms=1000)
    assert known is not None
    assert known.due_ms == 6000


@pytest.mark.parametrize("told", [{}, {"TIMER_OUT_MS": "x"}, {"TIMER_OUT_MS": "-1000"}])
def test_a_record_without_a_slot_does_not_wait(told: dict[str, str]) -> None:
    assert waiting(told, (0, 0, 91), width_ms=1000) is None


def test_what_is_delivered_is_what_was_sent_and_names_where_it_waited() -> None:
    properties = {"TAGS": "a", "REAL_TOPIC": "T", "REAL_QID": "3", "TIMER_OUT_MS": "5000"}
    record = kept(properties)
    made = delivered(record, dict(properties), entered_ms=1, now_ms=6000)
    assert (made.topic, made.queue_number, bytes(made.body), made.flag) == ("T", 3, b"body", 7)
    assert made.prepared_offset == 500
    kept_properties = decode_bytes(made.properties)
    assert kept_properties == {
        "TAGS": "a", "TIMER_OUT_MS": "5000", "TIMER_ENQUEUE_MS": "1", "TIMER_DEQUEUE_MS": "6000",
    }  # fmt: skip


def test_what_is_stored_anew_waits_on_and_counts() -> None:
    properties = {"REAL_TOPIC": "T", "REAL_QID": "3", "TIMER_OUT_MS": "5000"}
    once = rolled(kept(properties), dict(properties), entered_ms=1, now_ms=2)
    assert (once.topic, once.prepared_offset) == ("rmq_sys_wheel_timer", 500)
    told = decode_bytes(once.properties)
    assert (told["TIMER_ROLL_TIMES"], told["REAL_TOPIC"]) == ("1", "T")
    twice = rolled(kept(told), told, entered_ms=1, now_ms=2)
    assert decode_bytes(twice.properties)["TIMER_ROLL_TIMES"] == "2"


@pytest.mark.parametrize("place", [
    {}, {"REAL_TOPIC": "T"}, {"REAL_TOPIC": "T", "REAL_QID": "x"},
    {"REAL_TOPIC": "T", "REAL_QID": "-1"}, {"REAL_TOPIC": "T", "REAL_QID": "9" * 12},
    {"REAL_TOPIC": "rmq_sys_wheel_timer", "REAL_QID": "0"},
    {"REAL_TOPIC": "SCHEDULE_TOPIC_XXXX", "REAL_QID": "0"},
])  # fmt: skip
def test_what_does_not_say_where_it_belongs_goes_nowhere(place: dict[str, str]) -> None:
    with pytest.raises(CorruptRecord):
        delivered(kept(place), dict(place), entered_ms=1, now_ms=2)


def test_a_recall_waits_in_the_slot_of_what_it_takes_back() -> None:
    properties = waiting_with({"TIMER_DELAY_MS": "7777", "UNIQ_KEY": "K"})
    handle = RecallHandle.parse(handle_of(properties, "broker-a").decode())
    assert handle[:2] + handle[3:] == ("T", "broker-a", "K")
    taking, named = recall_of(handle, group="g", born_host=HOST, now_ms=NOW_MS + 5)
    assert named["TIMER_DEL_UNIQKEY"] == key_of(properties) == "T+K"
    assert taking.topic == "T"
    named = waiting_with(named, now_ms=NOW_MS + 5)
    recall, message = (waiting(p, (0, 0, 91), width_ms=1000) for p in (named, properties))
    assert recall is not None
    assert message is not None
    assert (recall.slot_ms, recall.is_recall) == (message.slot_ms, True)


def test_retries_and_what_does_not_wait_have_no_handle() -> None:
    assert handle_of({"TIMER_OUT_MS": "5000"}, "b") == b""
    assert handle_of({"TIMER_OUT_MS": "5000", "REAL_TOPIC": "%RETRY%g"}, "b") == b""
    assert handle_of({"REAL_TOPIC": "T"}, "b") == b""


@pytest.mark.parametrize(("text", "number"), [
    ("5", 5), ("-5", -5), ("+5", 5), ("", None), ("-", None), ("5s", None), ("٥", None),
    (str(2**63 - 1), 2**63 - 1), (str(2**63), None), (" 5", None),
])  # fmt: skip
def test_whole_numbers_are_what_java_reads(text: str, number: int | None) -> None:
    assert whole_number(text) == number
