"""Static topics: creates them, and moves their logical queues between brokers.

The steps of a move are those of RocketMQ's `mqadmin remappingStaticTopic`: the new leaders take
messages, the former ones stop, where these ended decides where the new parts begin, and the new
leaders are told. A change that failed in between is finished by `finish`.
Source: MQAdminUtils.remappingStaticTopic of RocketMQ 5.3.
"""

from __future__ import annotations

from collections.abc import Iterable

from sprocket.admin.caller import Caller
from sprocket.base.errors import TopicNotFound, UsageError
from sprocket.clientcore.static_plans import (
    StaticPlan,
    completed,
    creation,
    decided_at,
    move,
    unfinished,
)
from sprocket.message.topic import TEMPLATE, check_topic
from sprocket.protocol.bodies import MappedTopic, TopicStatsTable
from sprocket.protocol.requests.topic import CreateStaticTopic, TopicConfigOf, TopicStats


async def mappings(caller: Caller, topic: str) -> dict[str, MappedTopic]:
    """A topic with its mapping at all brokers that have it; empty if none has it.

    Raises:
        BrokersFailed, TransportError, ReplyError: a broker did not answer, or refused.
    """
    return await _known(caller, topic, await caller.masters())


async def create(
    caller: Caller, topic: str, *, queues: int, brokers: Iterable[str], now_ms: int
) -> dict[str, MappedTopic]:
    """Creates a static topic, or gives it more queues.

    Args:
        queues: logical queues in all.
        brokers: those that lead them; empty for all.

    Returns:
        The topic at each broker.

    Raises:
        UsageError: the topic is not static, the brokers disagree, it has as many queues already, or
            there is no such broker.
        BrokersFailed, TransportError, ReplyError: a broker did not answer, or refused.
    """
    check_topic(topic)
    masters = await caller.masters()
    names = _named(brokers, masters) or list(masters)
    known = await _known(caller, topic, masters)
    plan = completed(creation(topic, queues, names, known, now_ms=now_ms), masters)
    await _put(caller, plan, plan.topics, masters)
    return plan.topics


async def move_queues(
    caller: Caller, topic: str, *, brokers: Iterable[str], now_ms: int
) -> dict[str, MappedTopic]:
    """Moves the logical queues of a static topic, so that the named brokers lead all of them.

    Returns:
        The topic at each broker.

    Raises:
        TopicNotFound: no broker has it.
        UsageError, BrokersFailed, TransportError, ReplyError: as `create`.
    """
    masters = await caller.masters()
    names = _named(brokers, masters)
    known = await _known(caller, topic, masters)
    if not known:
        raise TopicNotFound(f"no broker has topic {topic}")
    plan = completed(move(topic, names, known, now_ms=now_ms), masters)
    return await _carried_out(caller, topic, plan, masters)


async def finish(caller: Caller, topic: str) -> dict[str, MappedTopic]:
    """Finishes a change that reached only some brokers; else it sends all brokers what they have.

    Returns:
        The topic at each broker.

    Raises:
        TopicNotFound, UsageError, BrokersFailed, TransportError, ReplyError: as `move_queues`.
    """
    masters = await caller.masters()
    known = await _known(caller, topic, masters)
    if not known:
        raise TopicNotFound(f"no broker has topic {topic}")
    plan = completed(unfinished(topic, known), masters)
    return await _carried_out(caller, topic, plan, masters)


async def _carried_out(
    caller: Caller, topic: str, plan: StaticPlan, masters: dict[str, str]
) -> dict[str, MappedTopic]:
    await _put(caller, plan, plan.gaining, masters)
    await _put(caller, plan, plan.losing, masters)
    ends: dict[tuple[str, int], int] = {}
    for name in plan.losing:
        reply = await caller.ask(masters[name], TopicStats(topic=topic))
        for queue, span in TopicStatsTable.decode(reply.body).offset_table.items():
            ends[name, queue.queue_id] = span.max_offset
    plan = decided_at(plan, ends)
    others = [name for name in plan.topics if name not in plan.gaining]
    await _put(caller, plan, plan.gaining, masters)
    await _put(caller, plan, others, masters)
    return plan.topics


async def _known(caller: Caller, topic: str, masters: dict[str, str]) -> dict[str, MappedTopic]:
    header = TopicConfigOf(topic=topic, lo=True)
    replies = await caller.ask_each(masters, header, absent=(TopicNotFound,))
    return {name: MappedTopic.decode(reply.body) for name, reply in replies.items()}


def _named(brokers: Iterable[str], masters: dict[str, str]) -> list[str]:
    names = sorted(set(brokers))
    if unknown := [name for name in names if name not in masters]:
        raise UsageError(f"no broker {unknown[0]} is registered with a master")
    return names


async def _put(
    caller: Caller, plan: StaticPlan, names: Iterable[str], masters: dict[str, str]
) -> None:
    """Sends the wanted state to some brokers, one after the other."""
    for name in names:
        mapped = plan.topics[name]
        assert mapped.mapping_detail is not None
        header = CreateStaticTopic(
            topic=mapped.topic_name,
            default_topic=TEMPLATE,
            read_queue_nums=mapped.read_queue_nums,
            write_queue_nums=mapped.write_queue_nums,
            perm=mapped.perm,
            topic_filter_type=mapped.topic_filter_type,
            topic_sys_flag=mapped.topic_sys_flag,
            order=mapped.order,
        )
        if name not in masters:
            raise UsageError(f"broker {name} has no master now")
        await caller.ask(masters[name], header, body=mapped.mapping_detail.encode())
