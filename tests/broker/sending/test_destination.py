"""Where messages go, as a table of a pure function."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from sprocket.base.errors import IllegalMessage, SystemFailure
from sprocket.broker.sending.destination import (
    DelayRules,
    Destination,
    Intake,
    Retry,
    destination,
    draft_in_batch,
    is_given_up,
)
from sprocket.delay.levels.levels import DelayLevels
from sprocket.delay.timers.timed import TimedWait, TimerLimits
from sprocket.message.drafting import copy_draft
from sprocket.message.hashing import tag_code
from sprocket.message.ids import offset_id
from sprocket.message.properties import decode_bytes, encode
from sprocket.message.record import Draft, Encoder, Record, parse, topic_part

HOST = bytes([127, 0, 0, 1, 0, 0, 0x2A, 0x9F])
ORIGIN = offset_id(HOST, 64)
RULES = DelayRules(DelayLevels.parse("1s 5s 10s 30s 1m"), TimerLimits(1000, 86_400_000), "broker-a")
NOW_MS = 1_700_000_000_123
DUE = str(NOW_MS + 5000)
SLOT = 1_700_000_005_000
SCHEDULE, TIMER = "SCHEDULE_TOPIC_XXXX", "rmq_sys_wheel_timer"
HALF, RETRY, DEAD = "RMQ_SYS_TRANS_HALF_TOPIC", "%RETRY%g", "%DLQ%g"
REAL = {"REAL_TOPIC": "T", "REAL_QID": "3"}
WAITS = {"TIMER_DELIVER_MS": DUE, "TIMER_OUT_MS": str(SLOT), **REAL}


def draft(**properties: str) -> tuple[Draft, dict[str, str]]:
    made = Draft("T", 3, b"body", b"", tag_code(properties.get("TAGS")), 7, 0, 5, HOST)
    return made, properties


def stored(reconsume_times: int = 0, topic: str = "T", **properties: str) -> Record:
    made, _ = draft()
    made.topic, made.reconsume_times = topic, reconsume_times
    made.properties = encode(properties).encode()
    raw = Encoder(HOST).encode(
        made, topic_part(topic.encode()), log_offset=64, queue_offset=0, stored_ms=100
    )
    return parse(raw)


def decided(intake: Intake, rules: DelayRules = RULES, now_ms: int = NOW_MS) -> Destination:
    """Where it goes; what came in stays as it is."""
    draft_before, properties_before = replace(intake.draft), dict(intake.properties)
    made = destination(intake, rules, now_ms=now_ms)
    assert (intake.draft, dict(intake.properties)) == (draft_before, properties_before)
    return made


def given_back(record: Record, level: int | None, *, times_max: int = 16, queue: int = 2) -> Intake:
    properties = decode_bytes(record.properties)
    made = copy_draft(record, properties, record.topic, queue_number=3, tries=1)
    return Intake(made, properties, Retry("g", times_max, level, queue, ORIGIN))


@pytest.mark.parametrize(
    ("asked", "place", "kept"),
    [
        ({}, ("T", 3), {}),
        ({"a": "b"}, ("T", 3), {"a": "b"}),
        ({"DELAY": "3"}, (SCHEDULE, 2), {"DELAY": "3", **REAL}),
        ({"DELAY": "99"}, (SCHEDULE, 4), {"DELAY": "5", **REAL}),
        ({"DELAY": "0"}, ("T", 3), {"DELAY": "0"}),
        ({"DELAY": "-1"}, ("T", 3), {"DELAY": "-1"}),
        ({"DELAY": "1", "TIMER_DELAY_MS": "5"}, (SCHEDULE, 0), {"DELAY": "1", **REAL}),
        ({"TIMER_DELIVER_MS": DUE}, (TIMER, 0), WAITS),
        ({"TIMER_DELAY_MS": "5000"}, (TIMER, 0), {"TIMER_DELAY_MS": "5000", **WAITS}),
        ({"TIMER_DELAY_SEC": "5"}, (TIMER, 0), {"TIMER_DELAY_SEC": "5", **WAITS}),
        ({"TIMER_DELAY_MS": "0"}, ("T", 3), {"TIMER_DELAY_MS": "0"}),
        ({"TIMER_DELAY_MS": "5", "TIMER_OUT_MS": "1"}, ("T", 3),
         {"TIMER_DELAY_MS": "5", "TIMER_OUT_MS": "1"}),
        ({"TRAN_MSG": "true"}, (HALF, 0), {"TRAN_MSG": "true", **REAL}),
        ({"TRAN_MSG": "TRUE", "DELAY": "3"}, (HALF, 0), {"TRAN_MSG": "TRUE", "DELAY": "3", **REAL}),
        ({"TRAN_MSG": "false", "DELAY": "3"}, (SCHEDULE, 2),
         {"TRAN_MSG": "false", "DELAY": "3", **REAL}),
    ],
)  # fmt: skip
def test_where_a_message_goes(
    asked: dict[str, str], place: tuple[str, int], kept: dict[str, str]
) -> None:
    made, properties = draft(**asked)
    found = decided(Intake(made, properties))
    assert (found.draft.topic, found.draft.queue_number) == place
    assert decode_bytes(found.draft.properties) == kept
    assert (found.topic, found.queue_number) == ("T", 3)
    assert (found.draft.body, found.draft.flag, found.draft.born_ms) == (b"body", 7, 5)
    assert found.wait == (TimedWait(SLOT, int(DUE)) if place[0] == TIMER else None)
    assert found.half == (kept if place[0] == HALF else None)
    assert bool(found.handle) is (place[0] == TIMER)
    assert found.is_awaited


def test_a_half_message_is_in_no_state_of_a_transaction() -> None:
    made, properties = draft(TRAN_MSG="true")
    made.sys_flag = 1 | 4
    assert decided(Intake(made, properties)).draft.sys_flag == 1


def test_a_committed_message_is_no_half_again_and_its_delay_begins() -> None:
    made, properties = draft(TRAN_MSG="true", DELAY="2", WAIT="false")
    found = decided(Intake(made, properties, is_committed=True))
    assert (found.draft.topic, found.draft.queue_number) == (SCHEDULE, 1)
    assert found.half is None
    assert found.is_awaited


def test_a_delayed_message_waits_in_the_queue_of_its_level_and_knows_where_it_belongs() -> None:
    made, properties = draft(TAGS="a", DELAY="3")
    waits = decided(Intake(made, properties), now_ms=1000).draft
    assert (waits.topic, waits.queue_number, waits.tag_code) == (SCHEDULE, 2, 11_000)
    assert decode_bytes(waits.properties) == {"TAGS": "a", "DELAY": "3", **REAL}


def test_a_level_above_the_highest_is_the_highest() -> None:
    made, properties = draft(DELAY="99")
    waits = decided(Intake(made, properties), now_ms=0).draft
    assert (waits.queue_number, waits.tag_code) == (4, 60_000)
    assert decode_bytes(waits.properties)["DELAY"] == "5"


@pytest.mark.parametrize("level", ["0", "-1"])
def test_no_level_means_at_once(level: str) -> None:
    made, properties = draft(DELAY=level)
    assert decided(Intake(made, properties)).draft.topic == "T"


@pytest.mark.parametrize("level", ["abc", "", "1" * 40])
def test_a_level_that_is_no_number_is_named(level: str) -> None:
    made, properties = draft(DELAY=level)
    with pytest.raises(SystemFailure, match="DELAY"):
        decided(Intake(made, properties))


def test_without_a_timer_no_message_waits_for_a_time() -> None:
    made, properties = draft(TIMER_DELAY_MS="5")
    with pytest.raises(SystemFailure, match="timer"):
        decided(Intake(made, properties), RULES._replace(timer=None))


def test_a_recall_of_what_is_due_is_refused() -> None:
    made, properties = draft(TIMER_DELIVER_MS="5", TIMER_DEL_UNIQKEY="T+u")
    with pytest.raises(IllegalMessage):
        decided(Intake(made, properties))
    taken = decided(Intake(made, {**properties, "TIMER_DELIVER_MS": DUE}))
    assert taken.wait == TimedWait(SLOT, int(DUE), is_recall=True)


def test_a_reply_waits_unless_its_sender_does_not_want_it() -> None:
    made, properties = draft(WAIT="false")
    assert not decided(Intake(made, properties)).is_awaited
    assert decided(Intake(made, properties, Retry("g", 16, None, 3))).is_awaited


@pytest.mark.parametrize("asked", [
    {"TRAN_MSG": "true"}, {"DELAY": "0"}, {"TIMER_DELAY_MS": "1"}, {"TIMER_DELIVER_MS": "1"},
])  # fmt: skip
def test_a_message_of_a_batch_goes_nowhere_else(asked: dict[str, str]) -> None:
    made, properties = draft(**asked)
    with pytest.raises(IllegalMessage, match="batch"):
        draft_in_batch(Intake(made, properties))
    plain = draft_in_batch(Intake(made, {"a": "b"}))
    assert (plain.topic, plain.queue_number, plain.properties) == ("T", 3, b"a\x01b\x02")


def test_a_message_that_comes_back_is_tried_again_each_time_a_level_later() -> None:
    for times in (0, 4):
        found = decided(given_back(stored(times, TAGS="a", MINE="1"), 0), now_ms=0)
        made = found.draft
        assert (found.topic, found.queue_number) == (RETRY, 2)
        assert (made.topic, made.reconsume_times) == (SCHEDULE, times + 1)
        assert (made.body, made.flag, made.born_ms) == (b"body", 7, 5)
        assert decode_bytes(made.properties) == {
            "TAGS": "a",
            "MINE": "1",
            "DELAY": str(min(3 + times, 5)),
            "RETRY_TOPIC": "T",
            "ORIGIN_MESSAGE_ID": ORIGIN,
            "WAIT": "false",
            "REAL_TOPIC": RETRY,
            "REAL_QID": "2",
        }


def test_the_first_topic_and_id_stay_through_all_retries() -> None:
    record = stored(1, RETRY, RETRY_TOPIC="T", ORIGIN_MESSAGE_ID="first")
    properties = decode_bytes(decided(given_back(record, 2)).draft.properties)
    assert properties["RETRY_TOPIC"] == "T"
    assert properties["ORIGIN_MESSAGE_ID"] == "first"
    assert properties["DELAY"] == "2"


def test_a_dead_letter_waits_for_nothing() -> None:
    found = decided(given_back(stored(16, DELAY="18"), 0))
    made = found.draft
    assert (made.topic, made.queue_number, made.reconsume_times) == (DEAD, 0, 17)
    assert (found.topic, found.queue_number) == (DEAD, 0)
    assert decode_bytes(made.properties)["DELAY"] == "0"


@pytest.mark.parametrize(
    ("times", "level", "limit", "is_dead"),
    [(0, 0, 16, False), (15, 0, 16, False), (16, 0, 16, True), (0, -1, 16, True), (0, 0, 0, True)],
)
def test_a_message_is_given_up_at_the_limit_or_at_once(
    times: int, level: int, limit: int, is_dead: bool
) -> None:
    intake = given_back(stored(times), level, times_max=limit)
    assert intake.retry is not None
    assert is_given_up(intake.draft, intake.retry) is is_dead


@pytest.mark.parametrize(
    ("times", "level", "place"),
    [(3, None, (RETRY, 1)), (4, None, (DEAD, 0)), (0, -1, (DEAD, 0))],
)
def test_a_send_to_a_retry_topic_stays_there_until_its_tries_are_used_up(
    times: int, level: int | None, place: tuple[str, int]
) -> None:
    made, properties = draft(a="b")
    made.topic, made.queue_number, made.reconsume_times = RETRY, 1, times
    found = decided(Intake(made, properties, Retry("g", 3, level, 1)))
    assert (found.draft.topic, found.draft.queue_number) == place
    kept = decode_bytes(found.draft.properties)
    assert kept == ({"a": "b", "DELAY": "0"} if place[0] == DEAD else {"a": "b"})
