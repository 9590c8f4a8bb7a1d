"""Plans for static topics, and a model of brokers that carry them out while messages are sent."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as some

from sprocket.base.errors import SystemFailure, UsageError
from sprocket.clientcore.logical_queues import (
    changed,
    decided,
    leader,
    led,
    logical,
    logical_of_send,
    part_after,
    part_at,
    physical,
)
from sprocket.clientcore.static_plans import (
    StaticPlan,
    check_whole,
    completed,
    creation,
    decided_at,
    empty,
    move,
    unfinished,
)
from sprocket.protocol.bodies import MappedTopic, MappingDetail, MappingItem

ALL = ["a", "b", "c"]


def detail_of(mapped: MappedTopic) -> MappingDetail:
    assert mapped.mapping_detail is not None
    return mapped.mapping_detail


def leaders(topics: dict[str, MappedTopic]) -> Counter[str]:
    return Counter({name: len(led(detail_of(each))) for name, each in topics.items()})


def test_a_topic_is_spread_evenly_and_grows() -> None:
    plan = creation("T", 5, ["a", "b"], {}, now_ms=10)
    assert leaders(plan.topics) == {"a": 3, "b": 2}
    assert check_whole("T", plan.topics) == (10, 5)
    more = creation("T", 8, ALL, plan.topics, now_ms=10)
    assert leaders(more.topics) == {"a": 3, "b": 3, "c": 2}
    assert check_whole("T", more.topics) == (1_010, 8)
    for name, before in plan.topics.items():
        kept = detail_of(more.topics[name]).hosted_queues
        assert detail_of(before).hosted_queues.items() <= kept.items()


def test_a_topic_never_shrinks_and_keeps_its_brokers() -> None:
    plan = creation("T", 4, ["a", "b"], {}, now_ms=10)
    for queues, brokers in ((4, ["a", "b"]), (3, ["a", "b"]), (5, ["a"]), (5, [])):
        with pytest.raises(UsageError):
            creation("T", queues, brokers, plan.topics, now_ms=10)


def test_a_move_changes_as_few_leaders_as_it_can() -> None:
    plan = creation("T", 6, ["a", "b"], {}, now_ms=10)
    moved = move("T", ALL, plan.topics, now_ms=10)
    assert leaders(moved.topics) == {"a": 2, "b": 2, "c": 2}
    assert (moved.gaining, moved.losing) == (("c",), ("a", "b"))
    assert move("T", ["a", "b"], plan.topics, now_ms=10).gaining == ()


def test_brokers_without_a_queue_know_the_topic() -> None:
    plan = completed(creation("T", 2, ["a"], {}, now_ms=10), ALL)
    assert check_whole("T", plan.topics) == (10, 2)
    assert detail_of(plan.topics["c"]).total_queues == 2


def test_what_is_unfinished_is_not_built_upon() -> None:
    plan = creation("T", 2, ["a", "b"], {}, now_ms=10)
    later = creation("T", 3, ["a", "b"], plan.topics, now_ms=10)
    usual = MappedTopic(topic_name="T")
    other = creation("T", 2, ["c"], {}, now_ms=10).topics
    twice = {**plan.topics, **other}
    shared = MappingDetail(
        bname="a",
        epoch=10,
        hosted_queues={n: [MappingItem(bname="a")] for n in (0, 1)},
        topic="T",
        total_queues=2,
    )
    for known in (
        {**plan.topics, "b": later.topics["b"]},
        {**plan.topics, "c": usual},
        {"a": plan.topics["a"]},
        twice,
        {"a": MappedTopic(topic_name="T", mapping_detail=shared)},
    ):
        with pytest.raises(UsageError):
            check_whole("T", known)
    with pytest.raises(UsageError):
        decided_at(move("T", ["c"], plan.topics, now_ms=10), {})
    with pytest.raises(UsageError):
        move("T", [], plan.topics, now_ms=10)
    moving = move("T", ["b"], plan.topics, now_ms=10)
    with pytest.raises(UsageError, match="b, which lead"):
        unfinished("T", {"a": moving.topics["a"]})


class Model:
    """Brokers that take plans and messages; what was acknowledged, by logical queue."""

    def __init__(self, queues: int) -> None:
        self.topics: dict[str, MappedTopic] = {name: empty("T", name) for name in ALL}
        self.stored: dict[tuple[str, int], list[int]] = {}
        self.sent: dict[int, list[int]] = {number: [] for number in range(queues)}
        self.count = 0
        plan = completed(creation("T", queues, ALL, {}, now_ms=1), ALL)
        self.put(plan, ALL)

    def put(self, plan: StaticPlan, names: list[str] | tuple[str, ...]) -> None:
        for name in names:
            wanted = plan.topics[name]
            after = changed(
                detail_of(self.topics[name]), detail_of(wanted), broker=name, is_forced=False
            )
            self.topics[name] = MappedTopic(
                topic_name="T",
                write_queue_nums=wanted.write_queue_nums,
                read_queue_nums=wanted.read_queue_nums,
                mapping_detail=after,
            )

    def send(self, broker: str, number: int) -> None:
        """Sends to the broker that a client believes to lead the queue."""
        item = leader(detail_of(self.topics[broker]), number)
        if item is None:
            return
        queue = self.stored.setdefault((broker, item.queue_id), [])
        assert item.queue_id < self.topics[broker].write_queue_nums
        at = logical_of_send(item, len(queue))
        assert at == -1 or at >= item.logic_offset
        queue.append(self.count)
        self.sent[number].append(self.count)
        self.count += 1

    def ends(self) -> dict[tuple[str, int], int]:
        queues = {
            (name, number): 0
            for name, each in self.topics.items()
            for number in range(each.write_queue_nums)
        }
        return queues | {place: len(queue) for place, queue in self.stored.items()}

    def read(self, number: int) -> list[tuple[int, int]]:
        """All messages of a logical queue as a consumer at its leader reads them."""
        (parts,) = (
            detail_of(each).hosted_queues[number]
            for each in self.topics.values()
            if leader(detail_of(each), number) is not None
        )
        found, at = [], decided(parts)[0].logic_offset
        while (item := part_at(parts, at)) is not None:
            queue = self.stored.get((item.bname, item.queue_id), [])
            offset = physical(item, at)
            if offset < len(queue):
                found.append((at, queue[offset]))
                at = logical(item, offset + 1)
            elif (after := part_after(parts, item)) is not None:
                at = after.logic_offset
            else:
                break
        return found


#: A message to a queue at a broker, or a move to some brokers with messages between its steps.
sends = some.tuples(some.sampled_from(ALL), some.integers(0, 3))
batches = some.lists(sends, max_size=8)
moves = some.tuples(
    some.sets(some.sampled_from(ALL), min_size=1), some.lists(batches, min_size=3, max_size=3)
)


@given(
    some.integers(1, 4),
    some.lists(some.tuples(batches, moves, some.none() | some.integers(0, 9)), max_size=6),
    batches,
)
def test_every_acknowledged_message_is_read_once_and_offsets_rise(
    queues: int,
    story: list[
        tuple[list[tuple[str, int]], tuple[set[str], list[list[tuple[str, int]]]], int | None]
    ],
    last: list[tuple[str, int]],
) -> None:
    """Some moves end after so many brokers were told, and are finished later."""
    model = Model(queues)

    def send_all(wanted: list[tuple[str, int]]) -> None:
        for broker, number in wanted:
            model.send(broker, number % queues)

    def carry_out(plan: StaticPlan, between: list[list[tuple[str, int]]], most: int) -> None:
        for name in plan.gaining[:most]:
            model.put(plan, [name])
        send_all(between[0])
        most -= len(plan.gaining)
        for name in plan.losing[: max(0, most)]:
            model.put(plan, [name])
        send_all(between[1])
        most -= len(plan.losing)
        if most < 0:
            return
        plan = decided_at(plan, model.ends())
        for name in [*plan.gaining, *(each for each in ALL if each not in plan.gaining)][:most]:
            model.put(plan, [name])
        send_all(between[2])

    for before, (targets, between), most in story:
        send_all(before)
        plan = move("T", targets, model.topics, now_ms=1)
        carry_out(plan, between, 99 if most is None else most)
        if most is not None:
            carry_out(unfinished("T", model.topics), between, 99)
        check_whole("T", model.topics)
    send_all(last)
    for number in range(queues):
        read = model.read(number)
        assert sorted(each for _, each in read) == model.sent[number]
        offsets = [offset for offset, _ in read]
        assert offsets == sorted(set(offsets))
    with pytest.raises(SystemFailure):
        changed(detail_of(model.topics["a"]), MappingDetail(bname="b"), broker="a", is_forced=False)
