"""Consumer groups: create, delete, list; their members and subscriptions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from sprocket.admin import attributes, known, topics
from sprocket.admin.caller import Caller
from sprocket.admin.config_changes import ConfigChange
from sprocket.base.errors import ConsumerOffline, GroupNotFound, ReplyError
from sprocket.message.topic import check_consumer_group, dead_letter_topic, retry_topic
from sprocket.protocol.bodies import (
    ConsumerConnection,
    GroupConfig,
    GroupTable,
    ProducerConnection,
)
from sprocket.protocol.requests.client import ConsumerConnections, ProducerConnections
from sprocket.protocol.requests.group import AllGroupConfigs, CreateGroup, DeleteGroup


class GroupMember(NamedTuple):
    """A client that is a member of a group.

    Attributes:
        language: the language in its requests.
        brokers: names of the brokers that it is connected to.
    """

    client_id: str
    address: str
    language: str
    version: int
    brokers: list[str]


class Online(NamedTuple):
    """A group that has members.

    Attributes:
        consume_type: `CONSUME_PASSIVELY` (push), `CONSUME_ACTIVELY` (pull), `CONSUME_POP`.
        message_model: `CLUSTERING`, `BROADCASTING`.
        consume_from: where it begins without committed offsets: `CONSUME_FROM_LAST_OFFSET`, ….
        subscriptions: expressions by topic, also for the group's retry topic.
    """

    consume_type: str
    message_model: str
    consume_from: str
    subscriptions: dict[str, str]
    members: list[GroupMember]


class GroupSettings(NamedTuple):
    """What a group is to have; None stays as it is, or has the value of every new group.

    Attributes:
        retry_max_times: retries of a message before it becomes a dead letter.
        retry_queue_nums: queues of its retry topic on each broker.
        consume_message_orderly: whether it uses ordered consumption.
        consume_enable: whether its members may consume.
        consume_broadcast_enable: whether its members may broadcast.
        attributes: values by name, such as `priority.factor`; None takes one away.
    """

    retry_max_times: int | None = None
    retry_queue_nums: int | None = None
    consume_message_orderly: bool | None = None
    consume_enable: bool | None = None
    consume_broadcast_enable: bool | None = None
    attributes: Mapping[str, str | None] | None = None


GroupChange = ConfigChange[GroupConfig]


async def create(
    caller: Caller,
    group: str,
    *,
    wanted: GroupSettings | None = None,
    is_trial: bool = False,
    cluster: str | None = None,
    broker: str | None = None,
) -> list[GroupChange]:
    """Creates a consumer group where it is missing; where it exists, changes what `wanted` names.

    Args:
        wanted: its settings; None for those that every new group has.
        is_trial: whether it is only said what would change.
        cluster, broker: only on the masters of a cluster, or on one; None for all.

    Returns:
        Its settings before and now, for each broker.

    Raises:
        UsageError: the name is not a valid group name, or there is no such broker.
        BrokersFailed, TransportError, ReplyError: a broker did not answer, or refused.
    """
    check_consumer_group(group)
    masters = await caller.masters(cluster=cluster, broker=broker)
    return await _put(caller, group, masters, wanted or GroupSettings(), is_trial=is_trial)


async def update(
    caller: Caller,
    group: str,
    *,
    wanted: GroupSettings,
    is_trial: bool = False,
    cluster: str | None = None,
    broker: str | None = None,
) -> list[GroupChange]:
    """Changes what `wanted` names on the brokers that have a consumer group. The rest stays.

    Returns:
        Its settings before and now, for each broker that has it.

    Raises:
        GroupNotFound: no such broker has it.
        UsageError: there is no such broker.
        BrokersFailed, TransportError, ReplyError: a broker did not answer, or refused.
    """
    masters = await caller.masters(cluster=cluster, broker=broker)
    tables = await _tables(caller, masters)
    having = {name: masters[name] for name, table in tables.items() if group in table}
    if not having:
        raise GroupNotFound(f"no broker has a consumer group {group}: create it first")
    return await _put(caller, group, having, wanted, is_trial=is_trial)


async def _put(
    caller: Caller,
    group: str,
    masters: dict[str, str],
    wanted: GroupSettings,
    *,
    is_trial: bool,
) -> list[GroupChange]:
    """Writes a group's settings to brokers; what `wanted` leaves out is as each broker has it."""
    named = {name: value for name, value in wanted._asdict().items() if value is not None}
    asked = named.pop("attributes", None)

    async def put(broker: str, address: str) -> GroupChange:
        before = (await _table(caller, address)).subscription_group_table.get(group)
        base = before or GroupConfig(group_name=group)
        had = base.attributes
        after = msgspec.structs.replace(base, attributes=attributes.changed(had, asked), **named)
        if after != before and not is_trial:
            differing = {} if before is None else had
            sent = msgspec.structs.replace(
                after, attributes=attributes.signed(differing, after.attributes)
            )
            await caller.ask(address, CreateGroup(), body=sent.encode())
        return GroupChange(broker, before, after)

    return list((await caller.at_each(masters, put)).values())


async def delete(
    caller: Caller,
    group: str,
    *,
    with_offsets: bool = True,
    cluster: str | None = None,
    broker: str | None = None,
) -> list[str]:
    """Deletes a consumer group on all masters, those of a cluster, or one.

    The request goes to all of them, also to those that do not know the group. It is no error if
    there is no such group.

    Args:
        with_offsets: whether to delete its offsets, retries and dead letters too.

    Returns:
        Names of the brokers that knew it.

    Raises:
        BrokersFailed, TransportError, ReplyError: a broker did not answer, or refused.
    """
    masters = await caller.masters(cluster=cluster, broker=broker)
    knew = await known.of_group(caller, group, masters)
    await caller.ask_each(masters, DeleteGroup(group_name=group, clean_offset=with_offsets))
    if with_offsets:
        for topic in (retry_topic(group), dead_letter_topic(group)):
            await topics.delete(caller, topic, cluster=cluster, broker=broker)
    return knew


async def names(caller: Caller, *, cluster: str | None = None) -> list[str]:
    """Names of the groups that any master knows, sorted."""
    tables = await _tables(caller, await caller.masters(cluster=cluster))
    return sorted({name for table in tables.values() for name in table})


async def settings(caller: Caller, group: str) -> dict[str, GroupConfig]:
    """A group's settings by broker name.

    Raises:
        GroupNotFound: no broker knows it.
    """
    tables = await _tables(caller, await caller.masters())
    found = {broker: table[group] for broker, table in tables.items() if group in table}
    if not found:
        raise GroupNotFound(f"no broker knows a consumer group {group}")
    return found


async def online(caller: Caller, group: str) -> Online:
    """A group's members and subscriptions, merged from all brokers.

    Raises:
        ConsumerOffline: it has no members.
    """
    seen: Online | None = None
    members: dict[str, GroupMember] = {}
    # Each broker knows only the members that are connected to it, and each keeps a subscription
    # table of its own. A member that is connected to several brokers is one member.
    replies = await caller.ask_each(
        await caller.masters(), ConsumerConnections(consumer_group=group), absent=(ConsumerOffline,)
    )
    for broker, reply in replies.items():
        told = ConsumerConnection.decode(reply.body)
        wants = {t: each.sub_string or "*" for t, each in told.subscription_table.items()}
        seen = Online(
            told.consume_type or "",
            told.message_model or "",
            told.consume_from_where or "",
            wants if seen is None else {**seen.subscriptions, **wants},
            [],
        )
        for each in told.connection_set:
            new = GroupMember(
                each.client_id, each.client_addr, each.language or "", each.version, []
            )
            members.setdefault(each.client_id, new).brokers.append(broker)
    if seen is None:
        raise ConsumerOffline(f"no member of consumer group {group} is online")
    return seen._replace(members=[members[client_id] for client_id in sorted(members)])


async def producers(caller: Caller, group: str) -> list[GroupMember]:
    """The members of a producer group, merged from all brokers, sorted by client id.

    Raises:
        ReplyError: no broker knows a producer of the group.
    """

    async def connected(_: str, address: str) -> ProducerConnection | ReplyError:
        try:
            reply = await caller.ask(address, ProducerConnections(producer_group=group))
        except ReplyError as error:
            return error
        return ProducerConnection.decode(reply.body)

    members: dict[str, GroupMember] = {}
    failure: ReplyError | None = None
    for broker, told in (await caller.at_each(await caller.masters(), connected)).items():
        if isinstance(told, ReplyError):
            failure = told
            continue
        for each in told.connection_set:
            new = GroupMember(
                each.client_id, each.client_addr, each.language or "", each.version, []
            )
            members.setdefault(each.client_id, new).brokers.append(broker)
    if failure is not None and not members:
        raise failure
    return [members[client_id] for client_id in sorted(members)]


async def _tables(caller: Caller, masters: dict[str, str]) -> dict[str, dict[str, GroupConfig]]:
    """All groups of each broker."""
    replies = await caller.ask_each(masters, AllGroupConfigs())
    return {
        broker: GroupTable.decode(reply.body).subscription_group_table
        for broker, reply in replies.items()
    }


async def _table(caller: Caller, address: str) -> GroupTable:
    reply = await caller.ask(address, AllGroupConfigs())
    return GroupTable.decode(reply.body)
