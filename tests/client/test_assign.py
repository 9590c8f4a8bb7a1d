from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sprocket.base.errors import ConfigError
from sprocket.client.assign import (
    STRATEGIES,
    ByConfig,
    ConsistentHash,
    MachineRooms,
    Nearest,
    Strategy,
    average,
    circle,
    sort_members,
    strategy_of,
)
from sprocket.client.config import ConsumerConfig
from sprocket.message.queue import QueueId

GOLDEN = Path(__file__).resolve().parent.parent / "golden"
BY_JAVA_NAME: dict[str, Strategy] = {
    "AVG": average,
    "AVG_BY_CIRCLE": circle,
    "CONSISTENT_HASH": ConsistentHash(),
}


def queues_of(brokers: int, per_broker: int) -> list[QueueId]:
    names = [f"broker-{chr(ord('a') + n)}" for n in range(brokers)]
    return [QueueId("TopicA", name, number) for name in names for number in range(per_broker)]


def rooms(names: list[str]) -> list[QueueId]:
    return [QueueId("TopicA", f"{name}@broker-a", number) for name in names for number in range(5)]


def texts(queues: list[QueueId]) -> list[str]:
    return [f"{queue.broker}:{queue.number}" for queue in queues]


@pytest.mark.parametrize("name", BY_JAVA_NAME)
def test_shares_are_those_of_java_members(name: str) -> None:
    for case in json.loads((GOLDEN / "allocate.json").read_text()):
        queues = queues_of(case["brokers"], case["queuesPerBroker"])
        for member, expected in case[name].items():
            assert texts(BY_JAVA_NAME[name](member, queues, case["consumers"])) == expected


def golden_rooms(name: str) -> dict[str, Any]:
    cases: dict[str, dict[str, Any]] = json.loads((GOLDEN / "allocate_rooms.json").read_text())
    return next(case for key, case in cases.items() if key.startswith(name))


def test_machine_rooms_are_shared_as_in_java() -> None:
    expected = golden_rooms("MACHINE_ROOM idcs")
    strategy = MachineRooms(["room1", "room2"])
    for member in expected:
        mine = strategy(member, rooms(["room1", "room2", "room3"]), sorted(expected))
        assert texts(mine) == expected[member]


def test_nearest_room_is_as_in_java() -> None:
    expected = golden_rooms("MACHINE_ROOM_NEARBY")
    strategy = Nearest(
        room_of_broker=lambda broker: broker.split("@")[0],
        room_of_member=lambda member: member.split("-")[0],
    )
    for member in expected:
        mine = strategy(member, rooms(["room1", "room2", "room3"]), sorted(expected))
        assert texts(mine) == expected[member]


def test_a_strategy_is_set_by_its_name_or_as_a_function() -> None:
    for name, strategy in BY_JAVA_NAME.items():
        assert type(strategy_of(name)) is type(strategy)
        assert strategy_of(name.lower()) is strategy_of(name)
    assert strategy_of(circle) is circle
    assert ConsumerConfig(assign="AVG_BY_CIRCLE").assign == "AVG_BY_CIRCLE"
    with pytest.raises(ConfigError, match="AVG, AVG_BY_CIRCLE, CONSISTENT_HASH"):
        ConsumerConfig(assign="MACHINE_ROOM")


def test_a_member_that_is_not_listed_gets_nothing() -> None:
    queues = queues_of(2, 4)
    strategies: list[Strategy] = [*BY_JAVA_NAME.values(), MachineRooms(["broker-a"])]
    for strategy in strategies:
        assert strategy("zz", queues, ["c1", "c2"]) == []


def test_queues_set_by_hand_count_only_where_they_exist() -> None:
    there, gone = QueueId("TopicA", "broker-a", 0), QueueId("TopicA", "broker-z", 0)
    strategy = ByConfig({"TopicA": [there, gone]})
    assert strategy("anyone", queues_of(1, 4), []) == [there]


def test_members_sort_by_utf16_units_as_java_texts_do() -> None:
    assert sort_members(["\uffff", "\U0001f600", "a"]) == ["a", "\U0001f600", "\uffff"]


@pytest.mark.parametrize("name", STRATEGIES)
@settings(deadline=None)
@given(
    brokers=st.integers(1, 4),
    per_broker=st.integers(0, 6),
    members=st.sets(st.text(min_size=1, max_size=5), min_size=1, max_size=7),
)
def test_every_queue_has_exactly_one_reader(
    name: str, brokers: int, per_broker: int, members: set[str]
) -> None:
    queues = queues_of(brokers, per_broker)
    ordered = sort_members(members)
    shares = [STRATEGIES[name](member, queues, ordered) for member in ordered]
    assert sorted(queue for share in shares for queue in share) == queues


@settings(deadline=None)
@given(
    count=st.integers(0, 40),
    members=st.sets(st.text("ab", min_size=1, max_size=5), min_size=1),
)
def test_average_shares_differ_by_one_at_most(count: int, members: set[str]) -> None:
    ordered = sort_members(members)
    sizes = [len(average(member, queues_of(1, count), ordered)) for member in ordered]
    assert max(sizes) - min(sizes) <= 1
