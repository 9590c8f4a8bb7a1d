"""Consumer groups: create, delete, list; their members and subscriptions."""

from __future__ import annotations

from typing import NamedTuple

from sprocket.admin import known, topics
from sprocket.admin.caller import Caller
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


async def create(
    caller: Caller,
    group: str,
    *,
    retry_max_times: int = 16,
    may_broadcast: bool = True,
    is_ordered: bool = False,
    cluster: str | None = None,
) -> list[str]:
    """Creates or changes a consumer group on all masters or those of a cluster.

    Args:
        retry_max_times: retries of a message before it becomes a dead letter.

    Returns:
        Names of the brokers that have it now.
    """
    check_consumer_group(group)
    config = GroupConfig(
        group_name=group,
        retry_max_times=retry_max_times,
        consume_broadcast_enable=may_broadcast,
        consume_message_orderly=is_ordered,
    )
    masters = await caller.masters(cluster=cluster)
    for address in masters.values():
        await caller.ask(address, CreateGroup(), body=config.encode())
    return list(masters)


async def delete(
    caller: Caller, group: str, *, with_offsets: bool = True, cluster: str | None = None
) -> list[str]:
    """Deletes a consumer group on all masters or those of a cluster.

    The request goes to all of them, also to those that do not know the group. It is no error if
    there is no such group.

    Args:
        with_offsets: whether to delete its offsets, retries and dead letters too.

    Returns:
        Names of the brokers that knew it.
    """
    masters = await caller.masters(cluster=cluster)
    knew = await known.of_group(caller, group, masters)
    for address in masters.values():
        await caller.ask(address, DeleteGroup(group_name=group, clean_offset=with_offsets))
    if with_offsets:
        for topic in (retry_topic(group), dead_letter_topic(group)):
            await topics.delete(caller, topic, cluster=cluster)
    return knew


async def names(caller: Caller, *, cluster: str | None = None) -> list[str]:
    """Names of the groups that any master knows, sorted."""
    found: set[str] = set()
    for address in (await caller.masters(cluster=cluster)).values():
        found |= (await _table(caller, address)).subscription_group_table.keys()
    return sorted(found)


async def settings(caller: Caller, group: str) -> dict[str, GroupConfig]:
    """A group's settings by broker name.

    Raises:
        GroupNotFound: no broker knows it.
    """
    found = {}
    for broker, address in (await caller.masters()).items():
        config = (await _table(caller, address)).subscription_group_table.get(group)
        if config is not None:
            found[broker] = config
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
    for broker, address in (await caller.masters()).items():
        try:
            reply = await caller.ask(address, ConsumerConnections(consumer_group=group))
        except ConsumerOffline:
            continue
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
    members: dict[str, GroupMember] = {}
    failure: ReplyError | None = None
    for broker, address in (await caller.masters()).items():
        try:
            reply = await caller.ask(address, ProducerConnections(producer_group=group))
        except ReplyError as error:
            failure = error
            continue
        for each in ProducerConnection.decode(reply.body).connection_set:
            new = GroupMember(
                each.client_id, each.client_addr, each.language or "", each.version, []
            )
            members.setdefault(each.client_id, new).brokers.append(broker)
    if failure is not None and not members:
        raise failure
    return [members[client_id] for client_id in sorted(members)]


async def _table(caller: Caller, address: str) -> GroupTable:
    reply = await caller.ask(address, AllGroupConfigs())
    return GroupTable.decode(reply.body)
