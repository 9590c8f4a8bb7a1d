"""Requests about topics at a broker.

Source: CreateTopicRequestHeader, DeleteTopic…, GetTopicConfig…, GetTopicStats… of RocketMQ 4.9
and 5.x.
"""

from __future__ import annotations

from typing import ClassVar

from sprocket.protocol.command import Header, Int


class CreateTopic(Header, kw_only=True):
    """Creates or changes a topic. `attributes`: `+name=value` or `-name`, joined by commas."""

    code: ClassVar[int] = 17

    topic: str
    default_topic: str
    read_queue_nums: Int
    write_queue_nums: Int
    perm: Int
    topic_filter_type: str
    topic_sys_flag: Int | None = None
    order: bool = False
    attributes: str | None = None
    force: bool | None = None


class CreateTopics(Header, kw_only=True):
    """Creates or changes several topics; request body: `TopicConfigList`."""

    code: ClassVar[int] = 18


class CreateStaticTopic(CreateTopic, kw_only=True):
    """Creates or changes a static topic at one broker; request body: `MappingDetail`.

    `force`: the mapping replaces what contradicts it.
    """

    code: ClassVar[int] = 513


class AllTopicConfigs(Header, kw_only=True):
    """Asks for all topics of a broker; reply body: `TopicTable`."""

    code: ClassVar[int] = 21


class TopicStats(Header, kw_only=True):
    """Asks for the offset ranges of a topic's queues; reply body: `TopicStatsTable`."""

    code: ClassVar[int] = 202

    topic: str
    lo: bool | None = None


class DeleteTopic(Header, kw_only=True):
    """Deletes a topic with its queues; no error if it does not exist."""

    code: ClassVar[int] = 215

    topic: str


class TopicConsumers(Header, kw_only=True):
    """Asks for the groups that consume a topic; reply body: `GroupList`."""

    code: ClassVar[int] = 300

    topic: str


class SystemTopicsOfBroker(Header, kw_only=True):
    """Asks for the topics that the broker creates for itself; reply body: `TopicList`."""

    code: ClassVar[int] = 305


class CleanUnusedTopics(Header, kw_only=True):
    """Deletes the queues of topics that no longer exist."""

    code: ClassVar[int] = 316


class TopicConfigOf(Header, kw_only=True):
    """Asks for one topic; reply body: `MappedTopic`, with the mapping only if `lo` is true."""

    code: ClassVar[int] = 351

    topic: str
    lo: bool | None = None
