"""The table of consumer offsets, as a core."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as some

from sprocket.base.errors import SystemBusy
from sprocket.broker.reading.pull import HOLD_MS_MAX
from sprocket.broker.tables.offset_resets import APART_MS, RESET_MS
from sprocket.broker.tables.offsets import ConsumerOffsets
from sprocket.store.state.snapshot import decode_state, encode_state
from sprocket.testing.clock import ManualClock
from tests.support import calls_of


def table(entries_max: int = 100, clock: ManualClock | None = None) -> ConsumerOffsets:
    clock = clock or ManualClock()
    return ConsumerOffsets(clock, entries_max=lambda: entries_max, steady_ms=clock.now_ms)


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


def commit(offsets: ConsumerOffsets, offset: int, address: str = "a") -> bool:
    return offsets.commit("g", "T", queue_number=0, offset=offset, address=address)


def held_at(offsets: ConsumerOffsets, address: str = "a") -> int | None:
    return offsets.held_at("g", "T", 0, address=address)


def reset_to_100(clock: ManualClock | None = None) -> ConsumerOffsets:
    offsets = table(clock=clock)
    offsets.commit("g", "T", queue_number=0, offset=500)
    offsets.reset("g", "T", queue_number=0, offset=100)
    return offsets


def test_a_reset_wins_over_commits_under_way_until_the_consumer_shows_that_it_heard() -> None:
    offsets = reset_to_100()
    assert not commit(offsets, 501)
    assert pull_at(offsets, 501) == 100
    assert not commit(offsets, 502)
    assert commit(offsets, 100)
    assert not commit(offsets, 502)
    assert offsets.committed("g", "T", 0) == 100
    assert pull_at(offsets, 100) is None
    assert commit(offsets, 101)
    assert offsets.committed("g", "T", 0) == 101
    offsets.validate()


def test_that_one_consumer_heard_of_a_reset_does_not_speak_for_another() -> None:
    offsets = reset_to_100()
    assert pull_at(offsets, 501, "a") == 100
    assert pull_at(offsets, 100, "a") is None
    assert commit(offsets, 150, "a")
    assert not commit(offsets, 502, "b")
    assert held_at(offsets, "b") == 150
    assert pull_at(offsets, 502, "b") == 150  # where the group is meanwhile
    assert commit(offsets, 160, "a")
    assert not commit(offsets, 502, "b")
    assert pull_at(offsets, 150, "b") is None
    assert commit(offsets, 170, "b")
    assert pull_at(offsets, 180, "a") is None
    assert offsets.committed("g", "T", 0) == 170


def test_a_reset_is_over_when_the_longest_pull_has_ended_since_one_heard() -> None:
    clock = ManualClock()
    offsets = reset_to_100(clock)
    clock.move(10 * RESET_MS)  # nobody came: it waits
    assert not commit(offsets, 501, "b")
    pull_at(offsets, 501, "a")
    pull_at(offsets, 100, "a")
    clock.move(RESET_MS - 1)
    assert not commit(offsets, 501, "b")
    assert "resetTable" in offsets.to_json()
    clock.move(1)
    assert "resetTable" not in offsets.to_json()
    offsets.is_changed = False
    assert pull_at(offsets, 501, "c") is None
    assert offsets.is_changed
    assert commit(offsets, 501, "b")
    assert held_at(offsets, "b") is None
    offsets.validate()


def test_no_pull_is_held_longer_than_a_reset_goes_on() -> None:
    assert RESET_MS >= HOLD_MS_MAX


@pytest.mark.parametrize("jump_ms", [-10 * RESET_MS, 10 * RESET_MS])
def test_a_wall_clock_that_jumps_neither_keeps_a_reset_nor_ends_it(jump_ms: int) -> None:
    wall, steady = ManualClock(), ManualClock()
    offsets = ConsumerOffsets(wall, entries_max=lambda: 10, steady_ms=steady.now_ms)
    commit(offsets, 500, "a")
    offsets.reset("g", "T", queue_number=0, offset=100)
    pull_at(offsets, 501, "a")
    pull_at(offsets, 100, "a")
    wall.move(jump_ms)
    assert not commit(offsets, 501, "b")
    steady.move(RESET_MS)
    assert commit(offsets, 501, "b")


def test_each_consumer_is_told_of_a_reset_a_few_times_and_may_then_pull_where_it_wants() -> None:
    offsets = reset_to_100()
    assert pull_at(offsets, 100, "a") == 100  # it may still hold messages from before
    for _ in range(3):  # an answer may have reached nobody
        assert pull_at(offsets, 501, "b") == 100
    assert pull_at(offsets, 501, "b") is None
    assert pull_at(offsets, 501, "c") == 100


def test_a_reset_remembers_so_many_connections_and_tells_older_ones_again() -> None:
    offsets = reset_to_100()
    for number in range(1001):
        assert pull_at(offsets, 100, f"{number}") == 100
        assert pull_at(offsets, 100, f"{number}") is None
    assert pull_at(offsets, 100, "1000") is None
    assert pull_at(offsets, 100, "0") == 100


def test_another_reset_is_told_to_those_that_heard_of_the_first() -> None:
    offsets = reset_to_100()
    pull_at(offsets, 501)
    pull_at(offsets, 100)
    offsets.reset("g", "T", queue_number=0, offset=50)
    assert not commit(offsets, 101)
    assert pull_at(offsets, 101) == 50
    assert pull_at(offsets, 50) is None
    assert commit(offsets, 51)


def test_a_pull_that_was_held_before_a_reset_is_sent_there_and_shows_nothing() -> None:
    offsets = reset_to_100()
    for _ in range(5):
        assert held_at(offsets) == 100
    assert not commit(offsets, 501)
    assert pull_at(offsets, 501) == 100
    assert pull_at(offsets, 100) is None
    assert held_at(offsets) is None


def test_a_reset_that_is_not_over_outlives_the_broker() -> None:
    offsets, clock = reset_to_100(), ManualClock()
    for _ in range(2):  # nobody has heard; then one has, and has gone on
        other = table(clock=clock)
        other.load(decode_state(encode_state(offsets.to_json())))
        other.validate()
        offsets = other
        at = other.committed("g", "T", 0)
        assert not commit(other, 501)
        assert pull_at(other, 501) == at
        assert pull_at(other, at) is None
        assert commit(other, 110)
    clock.move(RESET_MS)
    assert "resetTable" not in offsets.to_json()


def test_a_file_may_hold_a_reset_without_its_offset() -> None:
    offsets = table()
    offsets.load({"resetTable": {"T@g": {"0": 100}}})
    offsets.validate()
    assert offsets.committed("g", "T", 0) == 100
    assert pull_at(offsets, 501) == 100


def test_a_consumer_that_begins_where_it_was_told_to_is_not_sent_there_again() -> None:
    offsets = reset_to_100()
    offsets.note_query("g", "T", queue_number=0, address="a")
    assert pull_at(offsets, 501, "b") == 100
    assert pull_at(offsets, 100, "a") is None
    assert commit(offsets, 150, "a")
    offsets.note_query("g", "T", queue_number=0, address="c")
    assert pull_at(offsets, 150, "c") is None


def commit_apart(offsets: ConsumerOffsets, offset: int, address: str = "tool") -> bool:
    return offsets.commit("g", "T", queue_number=0, offset=offset, address=address, is_member=False)


def test_who_is_no_consumer_commits_once_it_asked_since_the_reset() -> None:
    offsets = reset_to_100()
    assert not commit_apart(offsets, 200)  # it may be a consumer that has just come again
    offsets.note_query("g", "T", queue_number=0, address="tool")
    assert commit_apart(offsets, 200)
    assert not commit(offsets, 501, "member")
    assert pull_at(offsets, 501, "member") == 200
    assert offsets.committed("g", "T", 0) == 200
    offsets.reset("g", "T", queue_number=0, offset=50)
    assert not commit_apart(offsets, 201)


def test_or_once_a_consumer_would_have_shown_itself() -> None:
    clock = ManualClock()
    offsets = reset_to_100(clock)
    assert not commit_apart(offsets, 200)
    clock.move(APART_MS - 1)
    assert not commit_apart(offsets, 201)
    clock.move(1)
    assert commit_apart(offsets, 202)
    assert not commit_apart(offsets, 501, "another")


def test_who_pulls_or_pulled_is_a_consumer_whatever_it_asks() -> None:
    clock = ManualClock()
    offsets = reset_to_100(clock)
    offsets.pulled("g", "T", queue_number=0, offset=500, address="before")
    pull_at(offsets, 501, "since")
    for address in ("before", "since"):
        offsets.note_query("g", "T", queue_number=0, address=address)
        assert not commit_apart(offsets, 502, address)
    clock.move(APART_MS)
    assert not commit_apart(offsets, 503, "before")
    assert not commit_apart(offsets, 503, "since")
    assert pull_at(offsets, 100, "since") is None
    assert commit_apart(offsets, 101, "since")


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
    offsets.pulled("g", "T", queue_number=0, offset=3, address="a")
    offsets.forget_topic("T")
    assert offsets.committed("h", "T", 0) is None
    assert offsets.pulled_at("g", "T", 0) is None
    assert offsets.committed("g", "U", 0) == 1
    offsets.forget_group("g")
    assert offsets.topics_of("g") == []
    offsets.validate()


def test_forgetting_visits_no_keys_of_others() -> None:
    offsets = table(entries_max=5_000)
    for number in range(2_000):
        offsets.commit(f"g{number}", f"T{number}", queue_number=0, offset=1)
        offsets.pulled(f"h{number}", f"T{number}", queue_number=0, offset=1, address="a")
    calls = calls_of(lambda: (offsets.forget_topic("T7"), offsets.forget_group("g9")))
    assert calls < 200
    assert offsets.pulled_at("h7", "T7", 0) is None
    assert offsets.committed("g9", "T9", 0) is None
    assert offsets.committed("g8", "T8", 0) == 1
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
