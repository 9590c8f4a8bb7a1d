"""Requests about consumer groups at a broker.

Source: SubscriptionGroupConfig, DeleteSubscriptionGroup…, GetConsumeStats…,
UpdateGroupForbidden… of RocketMQ 4.9 and 5.x.
"""

from __future__ import annotations

from typing import ClassVar

from sprocket.protocol.command import Header


class CreateGroup(Header, kw_only=True):
    """Creates or changes a group; request body: `GroupConfig`."""

    code: ClassVar[int] = 200


class CreateGroups(Header, kw_only=True):
    """Creates or changes several groups; request body: `GroupConfigList`."""

    code: ClassVar[int] = 225


class AllGroupConfigs(Header, kw_only=True):
    """Asks for all groups of a broker; reply body: `GroupTable`."""

    code: ClassVar[int] = 201


class DeleteGroup(Header, kw_only=True):
    """Deletes a group, and its offsets if `clean_offset`; no error if it does not exist."""

    code: ClassVar[int] = 207

    group_name: str
    clean_offset: bool = False


class ConsumeStatsOf(Header, kw_only=True):
    """Asks for a group's progress; reply body: `ConsumeStats`. `topic_list`: joined by `;`."""

    code: ClassVar[int] = 208

    consumer_group: str
    topic: str | None = None
    topic_list: str | None = None


class ConsumeTimeSpan(Header, kw_only=True):
    """Asks for the times of a group's queues; reply body: `ConsumeTimeSpans`."""

    code: ClassVar[int] = 303

    topic: str
    group: str


class AllConsumeStats(Header, kw_only=True):
    """Asks for the progress of all groups; reply body: `ConsumeStatsList`."""

    code: ClassVar[int] = 317

    is_order: bool


class GroupTopics(Header, kw_only=True):
    """Asks for the topics that a group consumes; reply body: `TopicList`."""

    code: ClassVar[int] = 343

    group: str


class GroupSubscription(Header, kw_only=True):
    """Asks for a group's subscription of a topic; reply body: `SubscriptionBody`."""

    code: ClassVar[int] = 345

    group: str
    topic: str | None = None


class GroupConfigOf(Header, kw_only=True):
    """Asks for one group; reply body: `GroupConfig`."""

    code: ClassVar[int] = 352

    group: str


class ForbidGroup(Header, kw_only=True):
    """Allows or forbids a group to read a topic; reply body: `GroupForbidden`."""

    code: ClassVar[int] = 353

    group: str
    topic: str
    readable: bool | None = None


class QueryAssignment(Header, kw_only=True):
    """Asks for a member's queues; request body: `AssignmentQuery`, reply body: `AssignmentBody`."""

    code: ClassVar[int] = 400


class SetRequestMode(Header, kw_only=True):
    """Sets whether a group pulls or pops; request body: `RequestMode`."""

    code: ClassVar[int] = 401


class AllRequestModes(Header, kw_only=True):
    """Asks for the modes of all groups, for slaves; reply body: `RequestModes`."""

    code: ClassVar[int] = 402
