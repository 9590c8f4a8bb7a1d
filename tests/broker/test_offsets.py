"""The table of consumer offsets, as a core."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as some

from sprocket.base.errors import SystemBusy
from sprocket.broker.offsets import ConsumerOffsets
from sprocket.store.snapshot import decode_state, encode_state
from sprocket.testing.clock import ManualClock


def table(entries_max: int = 100) -> ConsumerOffsets:
    return ConsumerOffsets(ManualClock(), entries_max=entries_max)


def test_what_a_group_commits_is_what_it_gets() -> None:
    offsets = table()
    assert offsets.committed("g", "T", 0) is None
    for offset in (5, 2, 99999):
        assert offsets.commit("g", "T", queue_number=0, offset=offset)
        assert offsets.committed("g", "T", 0) == offset
    assert offsets.committed("g", "T", 1) is None
    assert offsets.committed("h", "T", 0) is None
    assert offsets.is_changed


def pull_at(offsets: ConsumerOffsets, offset: int, address: str = "a") -> int | None:
    return offsets.pull_at("g", "T", queue_number=0, offset=offset, address=address)


def reset_to_100() -> ConsumerOffsets:
    offsets = table()
    offsets.commit("g", "T", queue_number=0, offset=500)
    offsets.reset("g", "T", queue_number=0, offset=100)
    return offsets


def test_a_reset_wins_over_commits_under_way_until_the_consumer_shows_that_it_heard() -> None:
    offsets = reset_to_100()
    assert not offsets.commit("g", "T", queue_number=0, offset=501)
    assert pull_at(offsets, 501) == 100
    assert not offsets.commit("g", "T", queue_number=0, offset=502)
    assert offsets.commit("g", "T", queue_number=0, offset=100)
    assert not offsets.commit("g", "T", queue_number=0, offset=502)
    assert offsets.committed("g", "T", 0) == 100
    assert pull_at(offsets, 100) is None
    assert offsets.commit("g", "T", queue_number=0, offset=101)
    assert offsets.committed("g", "T", 0) == 101
    offsets.validate()


def test_each_consumer_is_told_of_a_reset_a_few_times_and_may_then_pull_where_it_wants() -> None:
    offsets = reset_to_100()
    assert pull_at(offsets, 100, "a") == 100  # it may still hold messages from before
    for _ in range(3):  # an answer may have reached nobody
        assert pull_at(offsets, 501, "b") == 100
    assert pull_at(offsets, 501, "b") is None
    assert pull_at(offsets, 501, "c") is None


def test_a_pull_that_was_held_before_a_reset_is_sent_there_and_shows_nothing() -> None:
    offsets = reset_to_100()
    for _ in range(5):
        assert offsets.held_at("g", "T", 0) == 100
    assert not offsets.commit("g", "T", queue_number=0, offset=501)
    assert pull_at(offsets, 501) == 100
    assert pull_at(offsets, 100) is None
    assert offsets.held_at("g", "T", 0) is None


def test_a_reset_that_nobody_heard_of_outlives_the_broker() -> None:
    offsets, other = reset_to_100(), table()
    other.load(decode_state(encode_state(offsets.to_json())))
    other.validate()
    assert not other.commit("g", "T", queue_number=0, offset=501)
    assert pull_at(other, 501) == 100
    assert pull_at(other, 100) is None
    assert "resetTable" not in other.to_json()


def test_a_consumer_that_begins_where_it_was_told_to_is_not_sent_there_again() -> None:
    offsets = reset_to_100()
    offsets.asked("g", "T", queue_number=0, address="a")
    assert pull_at(offsets, 501, "b") == 100
    assert pull_at(offsets, 100, "a") is None


def test_topics_of_a_group_and_groups_of_a_topic() -> None:
    offsets = table()
    offsets.commit("g", "T", queue_number=1, offset=4)
    offsets.commit("g", "U", queue_number=0, offset=7)
    offsets.put("h", "T", queue_number=1, offset=2)
    assert offsets.topics_of("g") == ["T", "U"]
    assert offsets.groups_of("T") == ["g", "h"]
    assert offsets.queues("g", "T") == {1: 4}


def test_topics_and_groups_can_be_forgotten() -> None:
    offsets = table()
    for topic in ("T", "T@x", "U"):
        offsets.commit("g", topic, queue_number=0, offset=1)
    offsets.commit("h", "T", queue_number=0, offset=1)
    offsets.pulled("g", "T", queue_number=0, offset=3)
    offsets.forget_topic("T")
    assert offsets.committed("h", "T", 0) is None
    assert offsets.pulled_at("g", "T", 0) is None
    assert offsets.committed("g", "U", 0) == 1
    offsets.forget_group("g")
    assert offsets.topics_of("g") == []
    offsets.validate()


def test_the_table_is_bounded_and_known_entries_go_on() -> None:
    offsets = table(entries_max=1)
    offsets.commit("g", "T", queue_number=0, offset=1)
    with pytest.raises(SystemBusy):
        offsets.commit("g", "T", queue_number=1, offset=1)
    assert offsets.commit("g", "T", queue_number=0, offset=2)
    offsets.validate()


def test_the_version_rises_with_many_commits() -> None:
    offsets = table()
    before = offsets.version.counter
    for offset in range(500):
        offsets.commit("g", "T", queue_number=0, offset=offset)
    assert offsets.version.counter == before + 1


def test_keys_of_other_forms_survive_in_the_file() -> None:
    offsets = table()
    state = {"offsetTable": {"T@g@broadcast": {0: 5}, "T@g": {0: 6, 1: 7}}}
    offsets.load(state)
    assert offsets.committed("g", "T", 1) == 7
    saved = offsets.to_json()
    assert saved["offsetTable"] == state["offsetTable"]
    assert saved["groupTopicMap"] == {"g": ["T"]}
    offsets.validate()


names = some.sampled_from(["a", "b"])


@given(
    some.lists(
        some.tuples(
            some.sampled_from(["commit", "reset", "take", "put", "topic", "group"]),
            names,
            names,
            some.integers(0, 2),
        ),
        max_size=30,
    )
)
def test_saved_and_loaded_it_is_the_same(history: list[tuple[str, str, str, int]]) -> None:
    offsets = table(entries_max=6)
    for verb, group, topic, number in history:
        try:
            if verb == "commit":
                offsets.commit(group, topic, queue_number=number, offset=number)
            elif verb == "reset":
                offsets.reset(group, topic, queue_number=number, offset=number)
            elif verb == "put":
                offsets.put(group, topic, queue_number=number, offset=number)
        except SystemBusy:
            pass
        if verb == "take":
            offsets.pull_at(group, topic, queue_number=number, offset=number, address="a")
        elif verb == "topic":
            offsets.forget_topic(topic)
        elif verb == "group":
            offsets.forget_group(group)
        offsets.validate()
    again = table()
    again.load(offsets.to_json())
    assert again.to_json() == offsets.to_json()
