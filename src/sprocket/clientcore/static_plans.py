"""Plans which broker leads which logical queues: at the creation of a static topic and at a move.

A plan is the wanted state of each broker. Creating deals new queues to the brokers that lead the
fewest. A move changes as few leaders as possible, and has two steps: the new leaders take messages
before it is decided where their parts begin, and then, when the former leaders take none any more,
the beginnings follow from where those ended (`decided_at`).

Source: TopicQueueMappingUtils.createTopicConfigMapping and remappingStaticTopic, MQAdminUtils of
RocketMQ 5.3. A plan for the same state and brokers is the same each time; RocketMQ shuffles.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from sprocket.base.errors import UsageError
from sprocket.clientcore.logical_queues import (
    block_end,
    check_parts,
    is_decided,
    led,
    logical,
    queues_used,
)
from sprocket.protocol.bodies import MappedTopic, MappingDetail, MappingItem

#: Epochs of one topic are at least so far apart.
_EPOCH_STEP = 1_000


class StaticPlan(NamedTuple):
    """The wanted state of a static topic.

    Attributes:
        topics: the topic and its mapping, by broker.
        gaining, losing: the brokers that get logical queues from others, and these.
    """

    topics: dict[str, MappedTopic]
    gaining: tuple[str, ...] = ()
    losing: tuple[str, ...] = ()


def check_whole(topic: str, known: Mapping[str, MappedTopic]) -> tuple[int, int]:
    """Checks that the brokers agree, and that each logical queue has exactly one leader.

    Returns:
        The epoch and the number of logical queues.

    Raises:
        UsageError: they do not; an earlier change may be unfinished, or a broker is away.
    """
    details = [_detail(topic, broker, each) for broker, each in known.items()]
    states = {(each.epoch, each.total_queues, each.scope) for each in details}
    if len(states) != 1:
        raise UsageError(
            f"the brokers disagree about static topic {topic}: an earlier change is unfinished "
            "(`sprocket statictopic finish` sends the newest state to all), or a broker was away"
        )
    epoch, total, _ = states.pop()
    leaders: dict[int, str] = {}
    used: dict[tuple[str, int], int] = {}
    for detail in details:
        for number in led(detail):
            if number in leaders:
                raise UsageError(f"{leaders[number]} and {detail.bname} both lead queue {number}")
            leaders[number] = detail.bname
            check_parts(detail.hosted_queues[number])
            for item in detail.hosted_queues[number]:
                if used.setdefault((item.bname, item.queue_id), number) != number:
                    raise UsageError(f"queue {item.queue_id} of {item.bname} is used twice")
    if missing := sorted(set(range(total)) - leaders.keys()):
        raise UsageError(f"no broker leads the queues {missing} of static topic {topic}")
    return epoch, total


def creation(
    topic: str,
    queues: int,
    brokers: Iterable[str],
    known: Mapping[str, MappedTopic],
    *,
    now_ms: int,
) -> StaticPlan:
    """Makes a static topic, or gives it more queues.

    Args:
        queues: logical queues in all.
        brokers: those that lead them, with all that do now.
        known: the topic at all brokers that have it.

    Raises:
        UsageError: the brokers disagree, or the topic would have no more queues than before.
    """
    epoch, total, wanted = -_EPOCH_STEP, 0, dict(known)
    if known:
        epoch, total = check_whole(topic, known)
    if queues <= total:
        raise UsageError(f"static topic {topic} has {total} queues, it can only get more")
    names = sorted(set(brokers))
    having = {name for name, each in known.items() if led(_detail(topic, name, each))}
    if not names or having - set(names):
        raise UsageError(f"brokers that lead queues of {topic} are not named: {sorted(having)}")
    epoch = max(epoch + _EPOCH_STEP, now_ms)
    for number in range(total, queues):
        broker = min(names, key=lambda name: (_count(wanted.get(name)), name))
        mapped = wanted.get(broker) or empty(topic, broker)
        item = MappingItem(bname=broker, queue_id=mapped.write_queue_nums)
        wanted[broker] = _with(mapped, number, [item], adds_queue=True)
    return StaticPlan({name: _dated(each, epoch, queues) for name, each in wanted.items()})


def move(
    topic: str, targets: Iterable[str], known: Mapping[str, MappedTopic], *, now_ms: int
) -> StaticPlan:
    """Moves logical queues, so that the named brokers lead all of them, each about as many.

    The parts that are added begin at -1: see `decided_at`.

    Raises:
        UsageError: the brokers disagree, or no target is named.
    """
    epoch, total = check_whole(topic, known)
    names = sorted(set(targets))
    if not names:
        raise UsageError("no broker is named")
    epoch = max(epoch + _EPOCH_STEP, now_ms)
    leaders = {
        number: name
        for name, each in sorted(known.items())
        for number in led(_detail(topic, name, each))
    }
    wanted, gaining, losing = dict(known), set(), set()
    for number, broker in _moves(leaders, names, total).items():
        former = leaders[number]
        parts = _detail(topic, former, wanted[former]).hosted_queues[number]
        into = wanted.get(broker) or empty(topic, broker)
        added = MappingItem(
            bname=broker, gen=parts[-1].gen + 1, logic_offset=-1, queue_id=into.write_queue_nums
        )
        wanted[broker] = _with(into, number, [*parts, added], adds_queue=True)
        wanted[former] = _with(wanted[former], number, [*parts, added])
        gaining.add(broker)
        losing.add(former)
    dated = {name: _dated(each, epoch, total) for name, each in wanted.items()}
    return StaticPlan(dated, tuple(sorted(gaining)), tuple(sorted(losing)))


def unfinished(topic: str, known: Mapping[str, MappedTopic]) -> StaticPlan:
    """What is left of a change that reached only some brokers: the newest state goes to all.

    Of each logical queue the parts with the highest generation count, and decided ones before those
    that are not. What no broker has been told is lost, which leaves the queue where it was.

    Raises:
        UsageError: the topic is not static at some broker, or a broker that leads queues is away.
    """
    details = [_detail(topic, broker, each) for broker, each in sorted(known.items())]
    epoch = max(each.epoch for each in details) + _EPOCH_STEP
    total = max(each.total_queues for each in details)
    newest: dict[int, list[MappingItem]] = {}
    for detail in details:
        for number, parts in detail.hosted_queues.items():
            if parts and _age(parts) > _age(newest.get(number, [])):
                newest[number] = parts
    if absent := sorted({parts[-1].bname for parts in newest.values()} - known.keys()):
        raise UsageError(f"{', '.join(absent)}, which lead queues of {topic}, are away")
    used = queues_used([MappingDetail(hosted_queues=newest), *details])
    wanted: dict[str, MappedTopic] = {}
    gaining: set[str] = set()
    losing: set[str] = set()
    for detail in details:
        name, mapped = detail.bname, known[detail.bname]
        hosted = {
            number: parts
            for number, parts in newest.items()
            if number in detail.hosted_queues or parts[-1].bname == name
        }
        for number, parts in hosted.items():
            if parts[-1].bname != name and number in led(detail):
                losing.add(name)
            if not is_decided(parts[-1]):
                (gaining if parts[-1].bname == name else losing).add(name)
        queues = max(mapped.write_queue_nums, mapped.read_queue_nums, used.get(name, 0))
        wanted[name] = replace(
            mapped,
            read_queue_nums=queues,
            write_queue_nums=queues,
            mapping_detail=replace(detail, epoch=epoch, total_queues=total, hosted_queues=hosted),
        )
    return StaticPlan(wanted, tuple(sorted(gaining)), tuple(sorted(losing)))


def decided_at(plan: StaticPlan, ends: Mapping[tuple[str, int], int]) -> StaticPlan:
    """The plan of a move with the beginnings of its new parts.

    Args:
        ends: by broker and number of its queue, the offset behind the last message.

    Raises:
        UsageError: an end is missing.
    """

    def begun(parts: Sequence[MappingItem]) -> list[MappingItem]:
        if len(parts) < 2 or is_decided(parts[-1]):
            return list(parts)
        former = parts[-2]
        end = ends.get((former.bname, former.queue_id))
        if end is None:
            raise UsageError(f"{former.bname} does not say where its queue {former.queue_id} ends")
        begin = block_end(logical(former, end))
        return [*parts[:-1], replace(parts[-1], logic_offset=begin)]

    topics = {}
    for name, mapped in plan.topics.items():
        detail = _detail(mapped.topic_name, name, mapped)
        hosted = {number: begun(parts) for number, parts in detail.hosted_queues.items()}
        topics[name] = replace(mapped, mapping_detail=replace(detail, hosted_queues=hosted))
    return plan._replace(topics=topics)


def empty(topic: str, broker: str) -> MappedTopic:
    """A static topic at a broker that leads none of its queues."""
    detail = MappingDetail(bname=broker, topic=topic)
    return MappedTopic(
        topic_name=topic, read_queue_nums=0, write_queue_nums=0, mapping_detail=detail
    )


def completed(plan: StaticPlan, brokers: Iterable[str]) -> StaticPlan:
    """The plan with all other brokers, so that they know how many queues the topic has."""
    some = next(iter(plan.topics.values()))
    detail = _detail(some.topic_name, "", some)
    missing = {
        name: _dated(empty(some.topic_name, name), detail.epoch, detail.total_queues)
        for name in brokers
        if name not in plan.topics
    }
    return plan._replace(topics={**plan.topics, **missing})


def _moves(leaders: Mapping[int, str], names: Sequence[str], total: int) -> dict[int, str]:
    """The new broker of each queue that moves: brokers keep as many as they may have."""
    counts = {name: sum(each == name for each in leaders.values()) for name in names}
    most_first = sorted(names, key=lambda name: (-counts[name], name))
    least, more = divmod(total, len(names))
    left = {name: least + (index < more) for index, name in enumerate(most_first)}
    waiting = []
    for number in sorted(leaders):
        if left.get(leaders[number], 0) > 0:
            left[leaders[number]] -= 1
        else:
            waiting.append(number)
    free = [name for name in names for _ in range(left[name])]
    return dict(zip(waiting, free, strict=True))


def _detail(topic: str, broker: str, mapped: MappedTopic) -> MappingDetail:
    """The mapping of a topic at a broker.

    Raises:
        UsageError: the topic is not static there.
    """
    if mapped.mapping_detail is None:
        raise UsageError(f"topic {topic} exists at {broker} and is not static")
    return mapped.mapping_detail


def _count(mapped: MappedTopic | None) -> int:
    return 0 if mapped is None or mapped.mapping_detail is None else len(led(mapped.mapping_detail))


def _with(
    mapped: MappedTopic, number: int, parts: list[MappingItem], *, adds_queue: bool = False
) -> MappedTopic:
    """The topic at a broker with other parts of a logical queue, and perhaps one queue more."""
    detail = _detail(mapped.topic_name, "", mapped)
    hosted = {**detail.hosted_queues, number: parts}
    queues = max(mapped.write_queue_nums, mapped.read_queue_nums) + adds_queue
    return replace(
        mapped,
        read_queue_nums=queues,
        write_queue_nums=queues,
        mapping_detail=replace(detail, hosted_queues=hosted),
    )


def _age(parts: Sequence[MappingItem]) -> tuple[int, bool]:
    return (parts[-1].gen, is_decided(parts[-1])) if parts else (-1, False)


def _dated(mapped: MappedTopic, epoch: int, total: int) -> MappedTopic:
    detail = _detail(mapped.topic_name, "", mapped)
    return replace(mapped, mapping_detail=replace(detail, epoch=epoch, total_queues=total))
