"""Operations about consumer groups: list, show, members, lag; create, change, delete."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from sprocket.admin import consumers, groups, known, positions
from sprocket.admin.groups import GroupSettings
from sprocket.base.errors import ConsumerOffline, UsageError
from sprocket.broker.tables.groups import OWN_GROUPS
from sprocket.console.operations.declare import Declarations, OperationEnvironment
from sprocket.console.operations.values import (
    Asked,
    ChangeAsked,
    ChangeLine,
    ChangeReport,
    GroupName,
    OnlyBroker,
    OnlyCluster,
    OnlyTopic,
    Page,
    PageAsked,
    fields_of,
    page_of,
    report_of,
    time_of,
)
from sprocket.message.topic import is_system_group
from sprocket.protocol.bodies import GroupConfig
from sprocket.protocol.codes import RequestCode

declared = Declarations()

_TEXT_MAX = 1 << 20
#: The requests that find out whether a group is known, and where it is.
PROGRESS_CODES = (
    RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG,
    RequestCode.QUERY_TOPICS_BY_CONSUMER,
    RequestCode.GET_CONSUME_STATS,
)


class GroupListed(msgspec.Struct, frozen=True, kw_only=True):
    """A group of a list; members and lag only if they were asked for."""

    group: str
    members: int | None = None
    lag: int | None = None


class GroupsAsked(PageAsked, frozen=True, kw_only=True):
    """Which groups, and whether with members and lag."""

    internal: Annotated[bool, Meta(description="Whether RocketMQ's own groups are listed too.")] = (
        False
    )
    status: Annotated[
        bool, Meta(description="Whether members and lag are shown too; then limit is at most 100.")
    ] = False


class GroupAsked(Asked, frozen=True, kw_only=True):
    """Which group."""

    group: GroupName


class MemberFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A client that is a member of a group."""

    client_id: str
    address: str
    language: str
    version: int
    brokers: list[str]


class GroupDescribed(msgspec.Struct, frozen=True, kw_only=True):
    """A group: its settings at each broker, and what its members want."""

    group: str
    settings: dict[str, dict[str, Any]]
    is_online: bool
    consume_type: str | None = None
    message_model: str | None = None
    consume_from: str | None = None
    subscriptions: dict[str, str] = {}
    members: list[MemberFacts] = []


class LagAsked(PageAsked, frozen=True, kw_only=True):
    """The progress of which group."""

    group: GroupName
    topic: OnlyTopic = None


class QueueProgressFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A group's progress in a queue. Offsets are queue offsets."""

    topic: str
    broker: str
    queue: int
    committed: Annotated[int, Meta(description="Offset of the next message to consume.")]
    end: Annotated[int, Meta(description="Offset that the queue's next message will get.")]
    lag: Annotated[int, Meta(description="Messages that are not consumed.")]
    consumed_at: Annotated[
        datetime | None, Meta(description="When the last consumed message was stored.")
    ] = None


class GroupLag(msgspec.Struct, frozen=True, kw_only=True):
    """A group's progress, by queue."""

    group: str
    lag: Annotated[int, Meta(description="The lag of all queues.")]
    per_second: Annotated[float, Meta(description="Messages that it got a second.")]
    queues: Page[QueueProgressFacts]


class RunningAsked(Asked, frozen=True, kw_only=True):
    """Which member."""

    group: GroupName
    client: Annotated[str, Meta(min_length=1, max_length=255, description="Client id.")]
    stacks: Annotated[bool, Meta(description="Whether the stacks of its threads are shown.")] = (
        False
    )


class RunningFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a member, as it says."""

    client_id: str
    properties: dict[str, str]
    subscriptions: dict[str, str]
    queues: list[str]
    stacks: str | None = None


class GroupWanted(ChangeAsked, frozen=True, kw_only=True):
    """What a group is to have; what is not named stays, or is that of a new group."""

    group: GroupName
    retry_max_times: Annotated[
        Annotated[int, Meta(ge=-1, le=10_000)] | None,
        Meta(description="Retries of a message before it becomes a dead letter."),
    ] = None
    retry_queues: Annotated[
        Annotated[int, Meta(ge=1, le=1_024)] | None,
        Meta(description="Queues of its retry topic on each broker."),
    ] = None
    is_ordered: Annotated[bool | None, Meta(description="Whether it consumes in order.")] = None
    may_consume: Annotated[bool | None, Meta(description="Whether its members may consume.")] = None
    may_broadcast: Annotated[
        bool | None, Meta(description="Whether its members may broadcast.")
    ] = None
    attributes: Annotated[
        dict[str, Annotated[str, Meta(min_length=1)] | None] | None,
        Meta(description="Values by name; null takes one away."),
    ] = None
    cluster: OnlyCluster = None
    broker: OnlyBroker = None


class GroupDeleted(ChangeAsked, frozen=True, kw_only=True):
    """Which group goes, and where."""

    group: GroupName
    keep_offsets: Annotated[
        bool, Meta(description="Whether its offsets, retries and dead letters stay.")
    ] = False
    cluster: OnlyCluster = None
    broker: OnlyBroker = None


@declared.reads("groups.list", "/groups", codes=[RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG])
async def listed(given: OperationEnvironment, asked: GroupsAsked) -> Page[GroupListed]:
    """Lists consumer groups, on demand with members and lag."""
    if asked.status and asked.limit > 100:
        raise UsageError("with status a page has at most 100 groups: lower limit")
    rows = [
        GroupListed(group=name)
        for name in await groups.names(given.caller)
        if asked.internal or not (name in OWN_GROUPS or is_system_group(name))
    ]
    page = page_of(rows, asked, lambda row: row.group)
    if not asked.status:
        return page
    items = await asyncio.gather(*(_with_status(given, row.group) for row in page.items))
    return msgspec.structs.replace(page, items=list(items))


async def _with_status(given: OperationEnvironment, group: str) -> GroupListed:
    try:
        members = len((await groups.online(given.caller, group)).members)
    except ConsumerOffline:
        members = 0
    lag = (await positions.lag(given.caller, group)).behind
    return GroupListed(group=group, members=members, lag=lag)


@declared.reads(
    "groups.describe",
    "/groups/{group}",
    codes=[
        RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG,
        RequestCode.GET_CONSUMER_CONNECTION_LIST,
    ],
)
async def described(given: OperationEnvironment, asked: GroupAsked) -> GroupDescribed:
    """Shows a group: its settings, subscriptions and members."""
    await known.check_group(given.caller, asked.group)
    found = await _settings(given, asked.group)
    settings = {broker: fields_of(each) for broker, each in found.items()}
    try:
        online = await groups.online(given.caller, asked.group)
    except ConsumerOffline:
        return GroupDescribed(group=asked.group, settings=settings, is_online=False)
    return GroupDescribed(
        group=asked.group,
        settings=settings,
        is_online=True,
        consume_type=online.consume_type,
        message_model=online.message_model,
        consume_from=online.consume_from,
        subscriptions=online.subscriptions,
        members=[MemberFacts(**each._asdict()) for each in online.members[:1_000]],
    )


@declared.reads(
    "groups.lag",
    "/groups/{group}/lag",
    codes=PROGRESS_CODES,
)
async def lag(given: OperationEnvironment, asked: LagAsked) -> GroupLag:
    """Shows a group's committed offset and lag in each queue."""
    await known.check_group(given.caller, asked.group)
    found = await positions.lag(given.caller, asked.group, topic=asked.topic)
    rows = [
        QueueProgressFacts(
            topic=each.topic, broker=each.broker, queue=each.number, committed=each.committed,
            end=each.end, lag=each.behind, consumed_at=time_of(each.consumed_ms),
        )
        for each in found.queues
    ]  # fmt: skip
    return GroupLag(
        group=asked.group,
        lag=found.behind,
        per_second=found.per_second,
        queues=page_of(rows, asked, lambda row: f"{row.topic}:{row.broker}:{row.queue:010}"),
    )


@declared.reads(
    "groups.running",
    "/groups/{group}/running",
    codes=[RequestCode.GET_CONSUMER_CONNECTION_LIST, RequestCode.GET_CONSUMER_RUNNING_INFO],
)
async def running(given: OperationEnvironment, asked: RunningAsked) -> RunningFacts:
    """Asks a member of a group for its state: settings, subscriptions, queues, stacks."""
    told = await consumers.running(
        given.caller, asked.group, asked.client, with_stacks=asked.stacks
    )
    queues = [*told.mq_table, *(told.mq_pop_table or {})]
    return RunningFacts(
        client_id=asked.client,
        properties=dict(list(told.properties.items())[:1_000]),
        subscriptions={each.topic: each.sub_string or "*" for each in told.subscription_set},
        queues=[f"{each.topic}@{each.broker_name}:{each.queue_id}" for each in queues[:10_000]],
        stacks=None if told.jstack is None else told.jstack[:_TEXT_MAX],
    )


@declared.changes(
    "groups.create", "POST /groups", codes=[RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP]
)
async def create(given: OperationEnvironment, asked: GroupWanted) -> ChangeReport:
    """Creates a consumer group where it is missing; where it exists, changes what is named."""
    changes = await groups.create(
        given.caller, asked.group, wanted=_wanted(asked), is_trial=asked.dry_run,
        cluster=asked.cluster, broker=asked.broker,
    )  # fmt: skip
    return report_of(asked, f"group {asked.group}", changes, _shown)


@declared.changes(
    "groups.change",
    "PATCH /groups/{group}",
    codes=[RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP],
)
async def change(given: OperationEnvironment, asked: GroupWanted) -> ChangeReport:
    """Changes what is named of a group, on the brokers that have it. The rest stays."""
    wanted = _wanted(asked)
    if wanted == GroupSettings():
        raise UsageError("name what is to change, such as retry_max_times or may_consume")
    changes = await groups.update(
        given.caller, asked.group, wanted=wanted, is_trial=asked.dry_run,
        cluster=asked.cluster, broker=asked.broker,
    )  # fmt: skip
    return report_of(asked, f"group {asked.group}", changes, _shown)


@declared.changes(
    "groups.delete",
    "DELETE /groups/{group}",
    codes=[RequestCode.DELETE_SUBSCRIPTIONGROUP, RequestCode.DELETE_TOPIC_IN_BROKER],
    is_destructive=True,
)
async def delete(given: OperationEnvironment, asked: GroupDeleted) -> ChangeReport:
    """Deletes a consumer group, with its offsets, retries and dead letters unless they are kept."""
    masters = await given.caller.masters(cluster=asked.cluster, broker=asked.broker)
    if asked.dry_run:
        had = await known.of_group(given.caller, asked.group, masters)
    else:
        had = await groups.delete(
            given.caller, asked.group, with_offsets=not asked.keep_offsets,
            cluster=asked.cluster, broker=asked.broker,
        )  # fmt: skip
    changes = [
        ChangeLine(what=f"group {asked.group}", broker=each, before=asked.group) for each in had
    ]
    return ChangeReport(dry_run=asked.dry_run, changes=changes)


async def _settings(given: OperationEnvironment, group: str) -> dict[str, GroupConfig]:
    """A group's settings by broker; none if brokers know only its offsets."""
    if group not in await groups.names(given.caller):
        return {}
    return await groups.settings(given.caller, group)


def _wanted(asked: GroupWanted) -> GroupSettings:
    return GroupSettings(
        retry_max_times=asked.retry_max_times,
        retry_queue_nums=asked.retry_queues,
        consume_message_orderly=asked.is_ordered,
        consume_enable=asked.may_consume,
        consume_broadcast_enable=asked.may_broadcast,
        attributes=asked.attributes,
    )


def _shown(broker: str, group: GroupConfig) -> Any:
    return fields_of(group)
