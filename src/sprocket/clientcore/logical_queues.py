"""Logical queues of static topics: their parts, and logical offsets as offsets of brokers. Pure.

A logical queue is a row of parts, each a queue of a broker, oldest first. Messages are added to the
last part, at the broker that *leads* the logical queue. When the queue moves, the new part begins
at a logical offset above all of the former one: offsets rise in the order of the messages, with a
gap at each move. A part whose logical offset is not decided yet takes messages, and is not read.

Source: LogicQueueMappingItem, TopicQueueMappingUtils, TopicQueueMappingDetail, ClientMetadata of
RocketMQ 5.3.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from sprocket.base.errors import SystemFailure
from sprocket.message.queue import LOGICAL_PREFIX
from sprocket.protocol.bodies import MappingDetail, MappingInfo, MappingItem
from sprocket.protocol.bodies.static_topic import GLOBAL_SCOPE

#: Logical offsets are reserved in blocks of so many at a move.
BLOCK = 10_000
#: A name server that reports more queues of one topic is broken.
QUEUES_MAX = 65_536
#: Instead of the broker's name, of a logical queue that no known broker leads.
NO_BROKER = LOGICAL_PREFIX + "none__"

Parts = Sequence[MappingItem]


def logical_broker(scope: str = GLOBAL_SCOPE) -> str:
    """The broker name of logical queues, such as `__syslo__global__`."""
    return LOGICAL_PREFIX + (scope[2:] if scope == GLOBAL_SCOPE else scope)


def is_decided(item: MappingItem) -> bool:
    """Whether the logical offset of a part is decided."""
    return item.logic_offset >= 0


def ends(item: MappingItem) -> bool:
    """Whether the end of a part is known."""
    return item.end_offset > item.start_offset


def logical(item: MappingItem, offset: int) -> int:
    """The logical offset of an offset of a part's queue; of one before the part, where it begins.

    The part must be decided.
    """
    return item.logic_offset + max(0, offset - item.start_offset)


def logical_of_send(item: MappingItem, offset: int) -> int:
    """The same for a message that was just added; -1 while the part is not decided."""
    if not is_decided(item):
        return -1
    if item.end_offset >= item.start_offset:
        offset = min(offset, item.end_offset)
    return logical(item, offset)


def physical(item: MappingItem, offset: int) -> int:
    """The offset in a part's queue of a logical offset, which may be outside of the part."""
    return offset - item.logic_offset + item.start_offset


def block_end(offset: int, block: int = BLOCK) -> int:
    """The logical offset at which the next part begins, for the end of the former one.

    At least half a block stays free, for messages that the former broker still takes meanwhile.
    """
    number, left = divmod(offset, block)
    return (number + (1 if left < block // 2 else 2)) * block


def decided(parts: Parts) -> list[MappingItem]:
    """The parts that can be read, oldest first."""
    return [item for item in parts if is_decided(item)]


def part_at(parts: Parts, offset: int) -> MappingItem | None:
    """The part in which a logical offset lies: the newest that begins at or before it.

    An offset before all of them belongs to the oldest. None if no part is decided.
    """
    readable = decided(parts)
    for item in reversed(readable):
        if offset >= item.logic_offset:
            return item
    return readable[0] if readable else None


def part_after(parts: Parts, item: MappingItem) -> MappingItem | None:
    """The part behind one, if it can be read."""
    for before, after in pairwise(parts):
        if before.gen == item.gen:
            return after if is_decided(after) else None
    return None


def leader(detail: MappingDetail, number: int) -> MappingItem | None:
    """The part to which this broker adds messages of a logical queue; None if another leads it."""
    parts = detail.hosted_queues.get(number)
    return parts[-1] if parts and parts[-1].bname == detail.bname else None


def led(detail: MappingDetail) -> dict[int, int]:
    """The numbers of a broker's queues, by the number of the logical queue that it leads."""
    found = {number: leader(detail, number) for number in sorted(detail.hosted_queues)}
    return {number: item.queue_id for number, item in found.items() if item is not None}


def info_of(detail: MappingDetail) -> MappingInfo:
    """What a broker registers of a mapping."""
    return MappingInfo(
        bname=detail.bname,
        curr_id_map=led(detail),
        dirty=detail.dirty,
        epoch=detail.epoch,
        scope=detail.scope,
        topic=detail.topic,
        total_queues=detail.total_queues,
    )


def brokers_of_queues(infos: Iterable[MappingInfo]) -> dict[tuple[str, int], str]:
    """The broker of each logical queue, by broker name and number of the logical queue.

    Of two brokers that both claim to lead a queue, the one with the higher epoch does. A queue that
    none claims has `NO_BROKER`: it stays on the route, so that keys keep their queues.
    """
    newest: dict[tuple[str, int], MappingInfo] = {}
    totals: dict[str, tuple[int, int]] = {}
    for info in sorted(infos, key=lambda each: each.bname):
        name = logical_broker(info.scope)
        totals[name] = max(totals.get(name, (-1, 0)), (info.epoch, info.total_queues))
        for number in info.curr_id_map:
            known = newest.get((name, number))
            if known is None or known.epoch <= info.epoch:
                newest[name, number] = info
    return {
        (name, number): newest[name, number].bname if (name, number) in newest else NO_BROKER
        for name, (_, total) in totals.items()
        for number in range(min(total, QUEUES_MAX))
    }


def check_parts(parts: Parts) -> None:
    """Checks the parts of one logical queue.

    Raises:
        SystemFailure: a number is negative, or generations or logical offsets do not rise.
    """
    newer_gen = newer_offset = -1
    for index in range(len(parts) - 1, -1, -1):
        item = parts[index]
        if item.start_offset < 0 or item.gen < 0 or item.queue_id < 0:
            raise SystemFailure("The field is illegal, should not be negative")
        if index < len(parts) - 1 and not is_decided(item):
            raise SystemFailure("The non-latest item has negative logic offset")
        if newer_gen != -1 and item.gen >= newer_gen:
            raise SystemFailure("The gen does not increase monotonically")
        if item.end_offset != -1 and item.end_offset < item.start_offset:
            raise SystemFailure("The endOffset is smaller than the start offset")
        if newer_offset != -1 and item.logic_offset != -1:
            if item.logic_offset >= newer_offset:
                raise SystemFailure("The base logic offset does not increase monotonically")
            if ends(item) and logical(item, item.end_offset) >= newer_offset:
                raise SystemFailure("The max logic offset does not increase monotonically")
        newer_gen, newer_offset = item.gen, item.logic_offset


def check_change(old: Parts, new: Parts, *, is_same_epoch: bool) -> None:
    """Checks that a new state of a logical queue contradicts nothing that was readable before.

    RocketMQ leaves most of this to assertions, which are off in production.

    Raises:
        SystemFailure: an item that stays has another queue, or another logical offset than was
            decided; or the queue has another leader in the same epoch.
    """
    if not old:
        return
    if not new:
        raise SystemFailure("The new item list is null or empty")
    before = {item.gen: item for item in old}
    for item in new:
        known = before.get(item.gen)
        if known is None:
            continue
        if _place(known) != _place(item):
            raise SystemFailure(f"item {item.gen} is queue {_place(known)}, not {_place(item)}")
        if known.logic_offset not in (-1, item.logic_offset):
            raise SystemFailure(
                f"item {item.gen} begins at {known.logic_offset}, not {item.logic_offset}"
            )
    if is_same_epoch and (new[-1].gen, *_place(new[-1])) != (old[-1].gen, *_place(old[-1])):
        raise SystemFailure("The new leader is different but epoch equal")


def changed(
    old: MappingDetail | None, new: MappingDetail, *, broker: str, is_forced: bool
) -> MappingDetail:
    """The mapping of a topic at a broker after an operator's change.

    Logical queues that the change does not name stay as they are.

    Args:
        old: the mapping before; None if the topic was not static here.
        is_forced: the change replaces what contradicts it.

    Raises:
        SystemFailure: it contradicts itself, or what is known.
    """
    if new.bname != broker:
        raise SystemFailure(f"the mapping is that of broker {new.bname}, this is {broker}")
    for number, parts in new.hosted_queues.items():
        if not 0 <= number < new.total_queues:
            raise SystemFailure(f"the topic has {new.total_queues} queues, and none is {number}")
        check_parts(parts)
    if old is None:
        return new
    if not is_forced:
        if new.epoch < old.epoch:
            raise SystemFailure(f"Can't accept data with small epoch {new.epoch} < {old.epoch}")
        if new.scope != old.scope:
            raise SystemFailure(
                f"Can't accept data with unmatched scope {new.scope} != {old.scope}"
            )
        is_same = new.epoch == old.epoch
        for number, parts in old.hosted_queues.items():
            if number in new.hosted_queues:
                check_change(parts, new.hosted_queues[number], is_same_epoch=is_same)
            elif is_same:
                raise SystemFailure("Cannot accept equal epoch with null data")
    return MappingDetail(
        bname=new.bname,
        epoch=new.epoch,
        hosted_queues={**old.hosted_queues, **new.hosted_queues},
        scope=new.scope,
        topic=new.topic,
        total_queues=new.total_queues,
    )


def queues_used(details: Iterable[MappingDetail]) -> Mapping[str, int]:
    """How many queues of each broker the parts use: one more than the highest number."""
    used: dict[str, int] = {}
    for detail in details:
        for parts in detail.hosted_queues.values():
            for item in parts:
                used[item.bname] = max(used.get(item.bname, 0), item.queue_id + 1)
    return used


def _place(item: MappingItem) -> tuple[str, int, int]:
    return item.bname, item.queue_id, item.start_offset
