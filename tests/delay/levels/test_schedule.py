"""What waits, where it belongs, how far delivery is: pure."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as some

from sprocket.base.errors import CorruptRecord
from sprocket.delay.levels.levels import DelayLevels
from sprocket.delay.levels.schedule import ScheduleProgress, delay_by_level, due_draft, wait_ms
from sprocket.message.hashing import tag_code
from sprocket.message.properties import encode
from sprocket.message.record import Draft, Encoder, Record, parse, topic_part

HOST = bytes([127, 0, 0, 1, 0, 0, 0x2A, 0x9F])
LEVELS = DelayLevels.parse("1s 5s 10s")


def stored(draft: Draft) -> Record:
    raw = Encoder(HOST).encode(
        draft, topic_part(draft.topic.encode()), log_offset=0, queue_offset=0, stored_ms=100
    )
    return parse(raw)


def waiting(**properties: str) -> Record:
    draft = Draft("SCHEDULE_TOPIC_XXXX", 0, b"b", encode(properties).encode(), 0, 0, 0, 0, HOST)
    return stored(draft)


@given(
    topic=some.sampled_from(["T", "%RETRY%g", "x" * 127]),
    queue=some.integers(0, 1000),
    level=some.integers(1, 30),
    tag=some.sampled_from([None, "a"]),
    times=some.integers(0, 20),
)
def test_what_was_put_off_comes_back_as_it_was(
    topic: str, queue: int, level: int, tag: str | None, times: int
) -> None:
    properties = {"KEYS": "k l", "UNIQ_KEY": "u", **({"TAGS": tag} if tag else {})}
    draft = Draft(topic, queue, b"body", b"", tag_code(tag), 7, 1, 5, HOST, times)
    kept = dict(properties)
    waits = delay_by_level(properties, level, topic=topic, queue_number=queue)
    assert properties == kept, "what came in stays as it is"
    draft.topic, draft.queue_number = "SCHEDULE_TOPIC_XXXX", LEVELS.queue_of(LEVELS.clamp(level))
    draft.properties = encode(waits).encode()
    back = due_draft(stored(draft))
    assert (back.topic, back.queue_number, back.tag_code) == (topic, queue, tag_code(tag))
    assert (back.body, back.flag, back.sys_flag, back.born_ms) == (b"body", 7, 1, 5)
    assert (back.reconsume_times, back.keys, back.unique_key) == (times, "k l", "u")
    assert b"DELAY" not in back.properties


@pytest.mark.parametrize(
    "properties",
    [
        {},
        {"REAL_TOPIC": "T"},
        {"REAL_TOPIC": "T", "REAL_QID": "-1"},
        {"REAL_TOPIC": "T", "REAL_QID": "x"},
        {"REAL_TOPIC": "SCHEDULE_TOPIC_XXXX", "REAL_QID": "0"},
        {"REAL_TOPIC": "RMQ_SYS_TRANS_HALF_TOPIC", "REAL_QID": "0"},
    ],
)
def test_a_message_without_a_place_to_go_is_an_error(properties: dict[str, str]) -> None:
    with pytest.raises(CorruptRecord):
        due_draft(waiting(**properties))


def test_no_wait_is_longer_than_the_level_whatever_the_clock_did() -> None:
    assert wait_ms(1_100, delay_ms=1_000, now_ms=200) == 900
    assert wait_ms(1_100, delay_ms=1_000, now_ms=1_200) == 0
    assert wait_ms(900_000, delay_ms=1_000, now_ms=200) == 1_000


def test_progress_outside_the_queue_is_moved_into_it() -> None:
    progress = ScheduleProgress()
    progress.load({"offsetTable": {1: 8, "3": 9999, 4: 2}})
    assert progress.clamp(1, low=0, high=10) is None
    assert not progress.is_changed
    assert progress.clamp(3, low=0, high=5) == (3, 9999, 5)
    assert progress.clamp(4, low=3, high=5) == (4, 2, 3)
    assert [progress.at(level) for level in (1, 2, 3, 4)] == [8, 0, 5, 3]
    assert progress.is_changed
    assert progress.to_json() == {"offsetTable": {1: 8, 3: 5, 4: 3}}


@pytest.mark.parametrize("state", [{"offsetTable": [1]}, {"offsetTable": {"x": 1}}])
def test_a_file_of_another_form_is_refused(state: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"offsetTable|invalid"):
        ScheduleProgress().load(state)
