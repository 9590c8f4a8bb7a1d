"""Operations about topics: list, show, create, change, delete."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import msgspec
from msgspec import Meta

from sprocket.admin import topic_changes, topics, volumes
from sprocket.admin.topic_changes import TopicSettings
from sprocket.base.errors import UsageError
from sprocket.console.operations.declare import Declarations, OperationEnvironment
from sprocket.console.operations.values import (
    Asked,
    ChangeAsked,
    ChangeLine,
    ChangeReport,
    OnlyBroker,
    OnlyCluster,
    Page,
    PageAsked,
    TopicName,
    fields_of,
    page_of,
    report_of,
    time_of,
)
from sprocket.protocol.bodies import TopicConfig
from sprocket.protocol.codes import RequestCode

declared = Declarations()

_Queues = Annotated[int, Meta(ge=0, le=1_024)]
#: Permissions of a topic, as a user names them.
_PERMISSIONS = {"r": 4, "w": 2, "rw": 6}


class TopicsAsked(PageAsked, frozen=True, kw_only=True):
    """Which topics."""

    internal: Annotated[bool, Meta(description="Whether RocketMQ's own topics are listed too.")] = (
        False
    )


class TopicListed(msgspec.Struct, frozen=True, kw_only=True):
    """A topic of a list."""

    topic: str


class TopicAsked(Asked, frozen=True, kw_only=True):
    """Which topic."""

    topic: TopicName


class TopicAtBroker(msgspec.Struct, frozen=True, kw_only=True):
    """A topic's settings at a broker."""

    broker: str
    read_queues: int
    write_queues: int
    permission: Annotated[str, Meta(description="`r`, `w` or `rw`, or the number of another.")]
    attributes: dict[str, str]


class TopicDescribed(msgspec.Struct, frozen=True, kw_only=True):
    """A topic: its settings, and the groups that consume it."""

    topic: str
    brokers: list[TopicAtBroker]
    groups: list[str]


class QueueSpan(msgspec.Struct, frozen=True, kw_only=True):
    """The offsets of a queue."""

    broker: str
    queue: int
    min_offset: Annotated[int, Meta(description="Offset of its first message.")]
    max_offset: Annotated[int, Meta(description="Offset that its next message will get.")]
    updated_at: Annotated[
        datetime | None, Meta(description="When its last message was stored.")
    ] = None


class QueuesAsked(PageAsked, frozen=True, kw_only=True):
    """Which queues."""

    topic: TopicName


class VolumeOf(msgspec.Struct, frozen=True, kw_only=True):
    """How many messages the topic got, or a group got of it."""

    group: Annotated[
        str | None, Meta(description="The group that got them; none: those that were sent.")
    ]
    minute: int
    hour: int
    day: int
    per_second: float


class TopicVolumes(msgspec.Struct, frozen=True, kw_only=True):
    """What came into a topic, and what its groups got."""

    topic: str
    volumes: list[VolumeOf]


class TopicWanted(ChangeAsked, frozen=True, kw_only=True):
    """What a topic is to have; what is not named stays, or is that of a new topic."""

    topic: TopicName
    queues: Annotated[
        _Queues | None, Meta(description="Queues on each broker, to read and to write.")
    ] = None
    read_queues: Annotated[_Queues | None, Meta(description="Queues that consumers read.")] = None
    write_queues: Annotated[_Queues | None, Meta(description="Queues that producers write to.")] = (
        None
    )
    permission: Annotated[
        Annotated[str, Meta(pattern="^(r|w|rw)$")] | None,
        Meta(description="`r`, `w` or `rw`: what clients may do."),
    ] = None
    attributes: Annotated[
        dict[str, Annotated[str, Meta(min_length=1)] | None] | None,
        Meta(description="Values by name, such as message.type; null takes one away."),
    ] = None
    may_hide: Annotated[
        bool, Meta(description="Whether unread messages may be left in queues that nobody reads.")
    ] = False
    cluster: OnlyCluster = None
    broker: OnlyBroker = None


class TopicDeleted(ChangeAsked, frozen=True, kw_only=True):
    """Which topic goes, and where."""

    topic: TopicName
    cluster: OnlyCluster = None
    broker: OnlyBroker = None


@declared.reads("topics.list", "/topics", codes=[])
async def listed(given: OperationEnvironment, asked: TopicsAsked) -> Page[TopicListed]:
    """Lists the names of topics."""
    names = await topics.names(given.caller, with_internal=asked.internal)
    rows = [TopicListed(topic=name) for name in names]
    return page_of(rows, asked, lambda row: row.topic)


@declared.reads(
    "topics.describe",
    "/topics/{topic}",
    codes=[RequestCode.GET_TOPIC_CONFIG, RequestCode.QUERY_TOPIC_CONSUME_BY_WHO],
)
async def described(given: OperationEnvironment, asked: TopicAsked) -> TopicDescribed:
    """Shows a topic: queues, permission and attributes at each broker, and its groups."""
    found = await topic_changes.settings(given.caller, asked.topic)
    return TopicDescribed(
        topic=asked.topic,
        brokers=[_at_broker(broker, each) for broker, each in found.items()],
        groups=await volumes.groups_of(given.caller, asked.topic),
    )


@declared.reads("topics.queues", "/topics/{topic}/queues", codes=[RequestCode.GET_TOPIC_STATS_INFO])
async def queues(given: OperationEnvironment, asked: QueuesAsked) -> Page[QueueSpan]:
    """Shows the offsets of a topic's queues, and when each got its last message."""
    rows = [
        QueueSpan(
            broker=each.broker, queue=each.number, min_offset=each.min_offset,
            max_offset=each.max_offset, updated_at=time_of(each.updated_ms),
        )
        for each in await topics.status(given.caller, asked.topic)
    ]  # fmt: skip
    return page_of(rows, asked, lambda row: f"{row.broker}:{row.queue:010}")


@declared.reads(
    "topics.volume",
    "/topics/{topic}/volume",
    codes=[RequestCode.VIEW_BROKER_STATS_DATA, RequestCode.QUERY_TOPIC_CONSUME_BY_WHO],
)
async def volume(given: OperationEnvironment, asked: TopicAsked) -> TopicVolumes:
    """Shows how many messages a topic got in the last minute, hour and day, and its groups."""
    found = await volumes.of_topic(given.caller, asked.topic)
    return TopicVolumes(
        topic=asked.topic, volumes=[VolumeOf(**fields_of(each)) for each in found[:1_000]]
    )


@declared.changes("topics.create", "POST /topics", codes=[RequestCode.UPDATE_AND_CREATE_TOPIC])
async def create(given: OperationEnvironment, asked: TopicWanted) -> ChangeReport:
    """Creates a topic where it is missing; where it exists, changes only what is named."""
    changes = await topic_changes.create(
        given.caller, asked.topic, wanted=_wanted(asked), may_hide=asked.may_hide,
        is_trial=asked.dry_run, cluster=asked.cluster, broker=asked.broker,
    )  # fmt: skip
    return report_of(asked, f"topic {asked.topic}", changes, _at_broker)


@declared.changes(
    "topics.change", "PATCH /topics/{topic}", codes=[RequestCode.UPDATE_AND_CREATE_TOPIC]
)
async def change(given: OperationEnvironment, asked: TopicWanted) -> ChangeReport:
    """Changes what is named of a topic, on the brokers that have it. The rest stays."""
    wanted = _wanted(asked)
    if wanted == TopicSettings():
        raise UsageError("name what is to change: queues, permission or attributes")
    changes = await topic_changes.update(
        given.caller, asked.topic, wanted=wanted, may_hide=asked.may_hide,
        is_trial=asked.dry_run, cluster=asked.cluster, broker=asked.broker,
    )  # fmt: skip
    return report_of(asked, f"topic {asked.topic}", changes, _at_broker)


@declared.changes(
    "topics.delete",
    "DELETE /topics/{topic}",
    codes=[RequestCode.DELETE_TOPIC_IN_BROKER],
    is_destructive=True,
)
async def delete(given: OperationEnvironment, asked: TopicDeleted) -> ChangeReport:
    """Deletes a topic with its messages, on all brokers, those of a cluster, or one."""
    masters = await given.caller.masters(cluster=asked.cluster, broker=asked.broker)
    found = await topic_changes.settings(given.caller, asked.topic)
    having = {broker: each for broker, each in found.items() if broker in masters}
    if having and not asked.dry_run:
        await topics.delete(given.caller, asked.topic, cluster=asked.cluster, broker=asked.broker)
    changes = [
        ChangeLine(what=f"topic {asked.topic}", broker=broker, before=_at_broker(broker, each))
        for broker, each in having.items()
    ]
    return ChangeReport(dry_run=asked.dry_run, changes=changes)


def _wanted(asked: TopicWanted) -> TopicSettings:
    read, write = asked.read_queues, asked.write_queues
    if asked.queues is not None:
        if read is not None or write is not None:
            raise UsageError("give queues, or read_queues and write_queues")
        read = write = asked.queues
    permission = None if asked.permission is None else _PERMISSIONS[asked.permission]
    return TopicSettings(read, write, permission, asked.attributes)


def _at_broker(broker: str, topic: TopicConfig) -> TopicAtBroker:
    words = {bits: word for word, bits in _PERMISSIONS.items()}
    return TopicAtBroker(
        broker=broker, read_queues=topic.read_queue_nums, write_queues=topic.write_queue_nums,
        permission=words.get(topic.perm, str(topic.perm)), attributes=topic.attributes,
    )  # fmt: skip
