"""Creates and changes topics: what is not named stays as each broker has it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from sprocket.admin import attributes
from sprocket.admin.caller import Caller
from sprocket.admin.config_changes import ConfigChange
from sprocket.base.errors import RequestNotSupported, TopicNotFound, UsageError
from sprocket.message.topic import TEMPLATE, check_topic
from sprocket.protocol.bodies import (
    ConsumeStats,
    GroupList,
    TopicConfig,
    TopicStatsTable,
    TopicTable,
)
from sprocket.protocol.requests.group import ConsumeStatsOf
from sprocket.protocol.requests.topic import (
    AllTopicConfigs,
    CreateTopic,
    TopicConfigOf,
    TopicConsumers,
    TopicStats,
)

#: Queues of a new topic on each broker, and its permission, unless others are named.
NEW_QUEUES, NEW_PERMISSION = 8, 6


class TopicSettings(NamedTuple):
    """What a topic is to have on each broker; None stays as it is, or is that of a new topic.

    Attributes:
        permission: 4 readable, 2 writable, 6 both.
        attributes: values by name, see `sprocket.message.topic_attributes`; None takes one away.
    """

    read_queues: int | None = None
    write_queues: int | None = None
    permission: int | None = None
    attributes: Mapping[str, str | None] | None = None


TopicChange = ConfigChange[TopicConfig]


class UnreadQueues(UsageError):
    """A change would leave messages in queues that nobody can read any more."""


async def create(
    caller: Caller,
    topic: str,
    *,
    wanted: TopicSettings | None = None,
    may_hide: bool = False,
    is_trial: bool = False,
    cluster: str | None = None,
    broker: str | None = None,
) -> list[TopicChange]:
    """Creates a topic where it is missing; where it exists, changes what `wanted` names.

    Args:
        wanted: its settings; None for those that every new topic has.
        may_hide: whether messages may be left in queues that can no longer be read.
        is_trial: whether it is only said what would change.
        cluster, broker: only on the masters of a cluster, or on one; None for all.

    Returns:
        The topic before and now, for each broker.

    Raises:
        UsageError: the name is not a valid topic name, or there is no such broker.
        UnreadQueues: messages that a group has not consumed would be hidden; nothing is changed.
        BrokersFailed, TransportError, ReplyError: a broker did not answer, or refused.
    """
    check_topic(topic)
    masters = await caller.masters(cluster=cluster, broker=broker)
    found = await _found(caller, topic, masters)
    changes = await _planned(
        caller, topic, masters, found, wanted or TopicSettings(), may_hide=may_hide
    )
    return changes if is_trial else await _put(caller, masters, changes)


async def update(
    caller: Caller,
    topic: str,
    *,
    wanted: TopicSettings,
    may_hide: bool = False,
    is_trial: bool = False,
    cluster: str | None = None,
    broker: str | None = None,
) -> list[TopicChange]:
    """Changes what `wanted` names on the brokers that have a topic; the arguments of `create`.

    Returns:
        The topic before and now, for each broker that has it.

    Raises:
        TopicNotFound: no such broker has it.
        UsageError, UnreadQueues, BrokersFailed, TransportError, ReplyError: as for `create`.
    """
    masters = await caller.masters(cluster=cluster, broker=broker)
    found = await _found(caller, topic, masters)
    having = {name: address for name, address in masters.items() if name in found}
    if not having:
        raise TopicNotFound(f"no broker knows a topic {topic}: create it first")
    changes = await _planned(caller, topic, having, found, wanted, may_hide=may_hide)
    return changes if is_trial else await _put(caller, having, changes)


async def settings(caller: Caller, topic: str) -> dict[str, TopicConfig]:
    """A topic's settings at each master that has it.

    Raises:
        TopicNotFound: no broker has it.
        BrokersFailed, TransportError, ReplyError: a broker did not answer, or refused.
    """
    found = await _found(caller, topic, await caller.masters())
    if not found:
        raise TopicNotFound(f"no broker knows a topic {topic}")
    return found


async def _found(caller: Caller, topic: str, masters: dict[str, str]) -> dict[str, TopicConfig]:
    """The topic at each broker that has it."""

    async def one(_: str, address: str) -> TopicConfig:
        try:
            reply = await caller.ask(address, TopicConfigOf(topic=topic))
        except RequestNotSupported:  # a broker of RocketMQ 4 shows all topics only
            reply = await caller.ask(address, AllTopicConfigs())
            table = TopicTable.decode(reply.body).topic_config_table
            if topic not in table:
                raise TopicNotFound(f"no topic {topic}") from None
            return table[topic]
        return TopicConfig.decode(reply.body)

    return await caller.at_each(masters, one, absent=(TopicNotFound,))


async def _planned(
    caller: Caller,
    topic: str,
    masters: dict[str, str],
    found: dict[str, TopicConfig],
    wanted: TopicSettings,
    *,
    may_hide: bool,
) -> list[TopicChange]:
    changes = {
        broker: TopicChange(broker, found.get(broker), _after(topic, found.get(broker), wanted))
        for broker in masters
    }
    if not may_hide:
        await _check_nothing_hidden(caller, topic, masters, changes)
    return list(changes.values())


async def _put(
    caller: Caller, masters: dict[str, str], changes: list[TopicChange]
) -> list[TopicChange]:
    planned = {change.broker: change for change in changes}

    async def put(broker: str, address: str) -> TopicChange:
        change = planned[broker]
        if change.after != change.before:
            await caller.ask(address, request_of(change.after, before=change.before))
        return change

    return list((await caller.at_each(masters, put)).values())


def _after(topic: str, before: TopicConfig | None, wanted: TopicSettings) -> TopicConfig:
    base = before or TopicConfig(
        topic_name=topic,
        read_queue_nums=NEW_QUEUES if wanted.write_queues is None else wanted.write_queues,
        write_queue_nums=NEW_QUEUES if wanted.read_queues is None else wanted.read_queues,
        perm=NEW_PERMISSION,
    )
    named = {
        "read_queue_nums": wanted.read_queues,
        "write_queue_nums": wanted.write_queues,
        "perm": wanted.permission,
        "attributes": attributes.changed(base.attributes, wanted.attributes),
    }
    return msgspec.structs.replace(base, **{k: v for k, v in named.items() if v is not None})


def request_of(topic: TopicConfig, *, before: TopicConfig | None = None) -> CreateTopic:
    """The request that creates or changes a topic; attributes that stay are not named in it.

    Args:
        before: as it is at the broker; None if it is not there.
    """
    signed = attributes.signed({} if before is None else before.attributes, topic.attributes)
    return CreateTopic(
        topic=topic.topic_name,
        default_topic=TEMPLATE,
        read_queue_nums=topic.read_queue_nums,
        write_queue_nums=topic.write_queue_nums,
        perm=topic.perm,
        topic_filter_type=topic.topic_filter_type,
        topic_sys_flag=topic.topic_sys_flag,
        order=topic.order,
        attributes=",".join(f"{key}={value}" if value else key for key, value in signed.items())
        or None,
    )


async def _check_nothing_hidden(
    caller: Caller, topic: str, masters: dict[str, str], changes: dict[str, TopicChange]
) -> None:
    """Checks that no messages lie, or would come to lie, in queues that consumers do not read.

    Raises:
        UnreadQueues: some do.
    """
    for change in changes.values():
        after, before = change.after, change.before
        was_even = before is None or before.write_queue_nums <= before.read_queue_nums
        if was_even and after.write_queue_nums > after.read_queue_nums:
            raise UnreadQueues(
                f"{topic} on {change.broker} would have {after.write_queue_nums} write queues and "
                f"{after.read_queue_nums} read queues: nobody could read what is sent to the "
                "others"
            )
    shrunk = {
        name: masters[name]
        for name, change in changes.items()
        if change.before and change.after.read_queue_nums < change.before.read_queue_nums
    }

    async def unread(broker: str, address: str) -> dict[int, int]:
        return await _unread(caller, topic, address, first=changes[broker].after.read_queue_nums)

    for broker, messages in (await caller.at_each(shrunk, unread)).items():
        if messages:
            numbers = ", ".join(map(str, messages))
            raise UnreadQueues(
                f"{topic} on {broker}: queues {numbers} hold {sum(messages.values())} messages "
                "that not all groups have consumed, and nobody could read them any more"
            )


async def _unread(caller: Caller, topic: str, address: str, *, first: int) -> dict[int, int]:
    """Messages that a group has not consumed, by queue, in the queues from `first` on at a broker.

    Without groups these are all messages.
    """
    stats = await caller.ask(address, TopicStats(topic=topic))
    spans = {
        queue.queue_id: (span.min_offset, span.max_offset)
        for queue, span in TopicStatsTable.decode(stats.body).offset_table.items()
        if queue.queue_id >= first and span.max_offset > span.min_offset
    }
    if not spans:
        return {}
    names = GroupList.decode((await caller.ask(address, TopicConsumers(topic=topic))).body)
    tables: list[dict[int, int]] = []
    for group in names.group_list:
        reply = await caller.ask(address, ConsumeStatsOf(consumer_group=group, topic=topic))
        tables.append(_committed(ConsumeStats.decode(reply.body)))
    behind = {
        number: high - max(low, min((table.get(number, low) for table in tables), default=low))
        for number, (low, high) in spans.items()
    }
    return {number: count for number, count in sorted(behind.items()) if count > 0}


def _committed(stats: ConsumeStats) -> dict[int, int]:
    """A group's committed offsets at one broker, by queue."""
    return {queue.queue_id: each.consumer_offset for queue, each in stats.offset_table.items()}
