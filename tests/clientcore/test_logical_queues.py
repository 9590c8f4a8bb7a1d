"""Logical queues: parts, offsets, and what a change may not contradict."""

from __future__ import annotations

from bisect import bisect_left

import pytest
from hypothesis import given
from hypothesis import strategies as some

from sprocket.base.errors import SystemFailure
from sprocket.clientcore.logical_queues import (
    NO_BROKER,
    block_end,
    brokers_of_queues,
    changed,
    check_parts,
    info_of,
    leader,
    logical,
    logical_broker,
    logical_of_send,
    part_after,
    part_at,
    physical,
)
from sprocket.protocol.bodies import MappingDetail, MappingInfo, MappingItem


def item(gen: int = 0, logic: int = 0, broker: str = "a", queue: int = 0) -> MappingItem:
    return MappingItem(bname=broker, gen=gen, logic_offset=logic, queue_id=queue)


def detail(broker: str = "a", epoch: int = 1, **queues: list[MappingItem]) -> MappingDetail:
    hosted = {int(name[1:]): parts for name, parts in queues.items()}
    return MappingDetail(
        bname=broker, epoch=epoch, hosted_queues=hosted, topic="T", total_queues=len(hosted) or 1
    )


@pytest.mark.parametrize(
    ("end", "expected"),
    [(0, 10_000), (4_999, 10_000), (5_000, 20_000), (9_999, 20_000), (10_000, 20_000)],
)
def test_a_new_part_begins_in_a_new_block(end: int, expected: int) -> None:
    assert block_end(end) == expected


def test_the_part_that_is_not_decided_takes_messages_and_is_not_read() -> None:
    parts = [item(), item(1, -1, "b")]
    assert part_at(parts, 5) == parts[0]
    assert part_after(parts, parts[0]) is None
    assert logical_of_send(parts[1], 3) == -1


def test_the_broker_with_the_higher_epoch_leads() -> None:
    old = MappingInfo(bname="a", curr_id_map={0: 0, 1: 1}, epoch=1, topic="T", total_queues=2)
    new = MappingInfo(bname="b", curr_id_map={1: 0}, epoch=2, topic="T", total_queues=3)
    name = logical_broker()
    for infos in ([old, new], [new, old]):
        assert brokers_of_queues(infos) == {(name, 0): "a", (name, 1): "b", (name, 2): NO_BROKER}


def test_a_broker_registers_what_it_leads() -> None:
    mapping = detail(q0=[item(queue=4)], q1=[item(), item(1, 10_000, "b")])
    assert info_of(mapping).curr_id_map == {0: 4}
    assert leader(mapping, 1) is None


@pytest.mark.parametrize(
    "parts",
    [
        [item(queue=-1)],
        [item(0, -1), item(1, 5)],
        [item(1), item(1, 10)],
        [item(0, 10), item(1, 10)],
        [MappingItem(bname="a", start_offset=5, end_offset=3)],
        [MappingItem(bname="a", end_offset=20), item(1, 20)],
    ],
)
def test_parts_that_contradict_each_other_are_refused(parts: list[MappingItem]) -> None:
    with pytest.raises(SystemFailure):
        check_parts(parts)


OLD = detail(epoch=5, q0=[item(), item(1, 10_000, "b", 2)], q1=[item(queue=1)])


@pytest.mark.parametrize(
    "new",
    [
        detail(epoch=4, q0=OLD.hosted_queues[0]),
        detail("b", epoch=6, q0=OLD.hosted_queues[0]),
        detail(epoch=5, q0=OLD.hosted_queues[0]),
        detail(epoch=6, q0=[], q1=[item(queue=1)]),
        detail(epoch=6, q0=[item(), item(1, 20_000, "b", 2)], q1=[item(queue=1)]),
        detail(epoch=6, q0=[item(), item(1, 10_000, "c", 2)], q1=[item(queue=1)]),
        detail(epoch=5, q0=[item(), item(2, 20_000, "c")], q1=[item(queue=1)]),
        MappingDetail(bname="a", epoch=6, scope="other", topic="T", total_queues=2),
        MappingDetail(bname="a", epoch=6, hosted_queues={9: [item()]}, topic="T", total_queues=2),
    ],
)
def test_a_change_that_contradicts_what_is_known_is_refused(new: MappingDetail) -> None:
    with pytest.raises(SystemFailure):
        changed(OLD, new, broker="a", is_forced=False)


def test_queues_that_a_change_does_not_name_stay() -> None:
    new = detail(epoch=6, q0=[*OLD.hosted_queues[0], item(2, 20_000, "a", 2)])
    assert changed(OLD, new, broker="a", is_forced=False).hosted_queues == {
        0: new.hosted_queues[0],
        1: OLD.hosted_queues[1],
    }
    small = detail(epoch=1, q0=[item(3, 0, "c")])
    assert changed(OLD, small, broker="a", is_forced=True).hosted_queues[0] == [item(3, 0, "c")]


def test_the_undecided_offset_is_decided_once() -> None:
    before = detail(q0=[item(), item(1, -1, "b")])
    after = detail(q0=[item(), item(1, 10_000, "b")])
    assert changed(before, after, broker="a", is_forced=False) == after
    with pytest.raises(SystemFailure):
        changed(after, detail(q0=[item(), item(1, 20_000, "b")]), broker="a", is_forced=False)


@given(some.lists(some.integers(0, 30_000), min_size=1, max_size=6))
def test_each_message_has_one_logical_offset_and_they_rise(sizes: list[int]) -> None:
    """A queue that moves after so many messages in each part."""
    parts: list[MappingItem] = []
    for gen, size in enumerate(sizes):
        start = 0
        if parts:
            start = block_end(logical(parts[-1], sizes[gen - 1]))
        parts.append(item(gen, start, broker=f"b{gen % 2}", queue=gen))
        assert size >= 0
    check_parts(parts)
    seen: list[int] = []
    for part, size in zip(parts, sizes, strict=True):
        for offset in {0, size // 2, size - 1} if size else ():
            at = logical(part, offset)
            assert logical_of_send(part, offset) == at
            assert part_at(parts, at) == part
            assert physical(part, at) == offset
            seen.append(at)
    assert len(set(seen)) == len(seen)
    # Whoever reads from part to part meets each message once, in the order of the parts.
    at, met = parts[0], [parts[0]]
    while (after := part_after(parts, at)) is not None:
        at = after
        met.append(at)
    assert met == parts
    assert all(bisect_left(sorted(seen), logical(part, 0)) >= 0 for part in parts)
