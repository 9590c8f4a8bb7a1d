"""How messages change on their way in, as pure functions."""

from __future__ import annotations

import pytest

from sprocket.base.errors import SystemFailure
from sprocket.broker.sending import rewrite
from sprocket.delay.levels.levels import DelayLevels
from sprocket.message.hashing import tag_code
from sprocket.message.ids import offset_id
from sprocket.message.properties import encode
from sprocket.message.record import Draft, Encoder, Record, parse, topic_part

HOST = bytes([127, 0, 0, 1, 0, 0, 0x2A, 0x9F])
LEVELS = DelayLevels.parse("1s 5s 10s 30s 1m")


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


def test_a_delayed_message_waits_in_the_queue_of_its_level_and_knows_where_it_belongs() -> None:
    made, properties = draft(TAGS="a", DELAY="3")
    rewrite.delay(made, properties, levels=LEVELS, now_ms=1000)
    assert (made.topic, made.queue_number, made.tag_code) == ("SCHEDULE_TOPIC_XXXX", 2, 11_000)
    assert properties == {"TAGS": "a", "DELAY": "3", "REAL_TOPIC": "T", "REAL_QID": "3"}


def test_a_level_above_the_highest_is_the_highest() -> None:
    made, properties = draft(DELAY="99")
    rewrite.delay(made, properties, levels=LEVELS, now_ms=0)
    assert (made.queue_number, properties["DELAY"], made.tag_code) == (4, "5", 60_000)


@pytest.mark.parametrize("level", ["0", "-1"])
def test_no_level_means_at_once(level: str) -> None:
    made, properties = draft(DELAY=level)
    rewrite.delay(made, properties, levels=LEVELS, now_ms=0)
    assert made.topic == "T"


@pytest.mark.parametrize("level", ["abc", "", "1" * 40])
def test_a_level_that_is_no_number_is_named(level: str) -> None:
    made, properties = draft(DELAY=level)
    with pytest.raises(SystemFailure, match="DELAY"):
        rewrite.delay(made, properties, levels=LEVELS, now_ms=0)


def test_a_message_that_comes_back_is_tried_again_each_time_a_level_later() -> None:
    for times in (0, 4):
        record = stored(times, TAGS="a", MINE="1")
        properties = {"TAGS": "a", "MINE": "1"}
        made = rewrite.retried(record, properties, group="g", level=0, queue_number=0)
        assert (made.topic, made.reconsume_times) == ("%RETRY%g", times + 1)
        assert (made.body, made.flag, made.born_ms) == (b"body", 7, 5)
        assert made.tag_code == tag_code("a")
        assert properties == {
            "TAGS": "a",
            "MINE": "1",
            "DELAY": str(3 + times),
            "RETRY_TOPIC": "T",
            "ORIGIN_MESSAGE_ID": offset_id(HOST, 64),
            "WAIT": "false",
        }


def test_the_first_topic_and_id_stay_through_all_retries() -> None:
    properties = {"RETRY_TOPIC": "T", "ORIGIN_MESSAGE_ID": "first"}
    rewrite.retried(stored(1, "%RETRY%g"), properties, group="g", level=2, queue_number=0)
    assert properties["RETRY_TOPIC"] == "T"
    assert properties["ORIGIN_MESSAGE_ID"] == "first"
    assert properties["DELAY"] == "2"


def test_a_dead_letter_waits_for_nothing() -> None:
    properties = {"DELAY": "18"}
    made = rewrite.given_up(stored(16), properties, group="g")
    assert (made.topic, made.queue_number, made.reconsume_times) == ("%DLQ%g", 0, 17)
    assert properties["DELAY"] == "0"


@pytest.mark.parametrize(
    ("times", "level", "limit", "is_dead"),
    [(0, 0, 16, False), (15, 0, 16, False), (16, 0, 16, True), (0, -1, 16, True), (0, 0, 0, True)],
)
def test_a_message_is_given_up_at_the_limit_or_at_once(
    times: int, level: int, limit: int, is_dead: bool
) -> None:
    assert rewrite.is_given_up(stored(times), level=level, times_max=limit) is is_dead
