from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sprocket.base.errors import UsageError
from sprocket.clientcore.queue_choice import Faults, QueueChooser, by_key
from sprocket.message.queue import QueueId

GOLDEN = Path(__file__).resolve().parents[1] / "golden"
A0, A1 = QueueId("t", "a", 0), QueueId("t", "a", 1)
B0, B1 = QueueId("t", "b", 0), QueueId("t", "b", 1)


def test_a_key_chooses_the_queue_that_java_chooses() -> None:
    for case in json.loads((GOLDEN / "select_by_hash.json").read_text()):
        queues = [QueueId("t", "a", number) for number in range(case["queues"])]
        assert by_key(queues, case["arg"]).number == case["queueId"], case


def test_a_large_number_hashes_as_a_java_long() -> None:
    queues = [QueueId("t", "a", number) for number in range(1000)]
    assert by_key(queues, 2**32).number == 1
    assert by_key(queues, -(2**32)).number == 1
    with pytest.raises(UsageError):
        by_key(queues, 2**63)


@settings(deadline=None)
@given(key=st.one_of(st.text(), st.integers(-(2**63), 2**63 - 1)), count=st.integers(1, 20))
def test_any_key_has_a_queue(key: str | int, count: int) -> None:
    queues = [QueueId("t", "a", number) for number in range(count)]
    assert by_key(queues, key) in queues


def test_queues_take_turns_from_where_it_was_told_to_start() -> None:
    chooser = QueueChooser(start=1)
    assert [chooser.next([A0, A1, B0], 0.0) for _ in range(4)] == [B0, A0, A1, B0]


def test_each_topic_has_its_own_turn() -> None:
    chooser = QueueChooser()
    other = QueueId("u", "a", 0)
    seen = [chooser.next([A0, B0], 0.0), chooser.next([other], 0.0), chooser.next([A0, B0], 0.0)]
    assert seen == [B0, other, A0]


def test_the_broker_that_just_failed_is_left_out_where_there_is_another() -> None:
    chooser = QueueChooser()
    assert {chooser.next([A0, A1, B0, B1], 0.0, not_at="a").broker for _ in range(8)} == {"b"}
    assert chooser.next([A0, A1], 0.0, not_at="a").broker == "a"


def test_a_failed_broker_is_avoided_for_ten_seconds() -> None:
    faults = Faults()
    chooser = QueueChooser(faults=faults)
    faults.failed("a", now=100.0)
    assert {chooser.next([A0, B0], 109.9).broker for _ in range(4)} == {"b"}
    assert {chooser.next([A0, B0], 110.1).broker for _ in range(4)} == {"a", "b"}


def test_a_slow_broker_is_avoided_until_it_answers_quickly() -> None:
    faults = Faults()
    faults.answered("a", 0.6, now=0.0)
    assert faults.is_avoided("a", 1.9)
    faults.answered("a", 0.01, now=1.9)
    assert not faults.is_avoided("a", 1.9)


def test_when_all_brokers_failed_turns_go_on() -> None:
    faults = Faults()
    chooser = QueueChooser(faults=faults)
    faults.failed("a", 0.0)
    faults.failed("b", 0.0)
    assert {chooser.next([A0, B0], 1.0) for _ in range(4)} == {A0, B0}


@settings(deadline=None)
@given(
    failed=st.sets(st.sampled_from("abc")),
    turns=st.integers(3, 30),
    not_at=st.sampled_from(["", "a", "b", "c"]),
)
def test_healthy_brokers_are_preferred_and_one_is_always_chosen(
    failed: set[str], turns: int, not_at: str
) -> None:
    queues = [QueueId("t", broker, number) for broker in "abc" for number in range(2)]
    faults = Faults()
    for broker in sorted(failed):
        faults.failed(broker, 0.0)
    chooser = QueueChooser(faults=faults)
    chosen = {chooser.next(queues, 1.0, not_at=not_at).broker for _ in range(turns)}
    healthy = set("abc") - failed - {not_at}
    assert chosen <= (healthy or set("abc") - {not_at})
