"""Consumer groups at a broker.

Source: SubscriptionGroupConfig, DeleteSubscriptionGroup…, GetConsumeStats…,
UpdateGroupForbidden… of RocketMQ 4.9 and 5.x.
"""

from __future__ import annotations

from typing import ClassVar

from sprocket.protocol.command import Header


class CreateGroup(Header, kw_only=True):
    """Makes or changes a group; body `GroupConfig`."""

    code: ClassVar[int] = 200


class CreateGroups(Header, kw_only=True):
    """Makes or changes several; body `GroupConfigList`."""

    code: ClassVar[int] = 225


class AllGroupConfigs(Header, kw_only=True):
    """All groups of a broker; body of the answer: `GroupTable`."""

    code: ClassVar[int] = 201


class DeleteGroup(Header, kw_only=True):
    """Deletes a group, and its offsets if asked; no error if there is none."""

    code: ClassVar[int] = 207

    group_name: str
    clean_offset: bool = False


class ConsumeStatsOf(Header, kw_only=True):
    """How far a group is; body of the answer: `ConsumeStats`. `topic_list`: joined by `;`."""

    code: ClassVar[int] = 208

    consumer_group: str
    topic: str | None = None
    topic_list: str | None = None


class ConsumeTimeSpan(Header, kw_only=True):
    """Times of a group's queues; body of the answer: `ConsumeTimeSpans`."""

    code: ClassVar[int] = 303

    topic: str
    group: str


class AllConsumeStats(Header, kw_only=True):
    """How far all groups are; body of the answer: `ConsumeStatsList`."""

    code: ClassVar[int] = 317

    is_order: bool


class GroupTopics(Header, kw_only=True):
    """Topics that a group consumes; body of the answer: `TopicList`."""

    code: ClassVar[int] = 343

    group: str


class GroupSubscription(Header, kw_only=True):
    """A group's subscription of a topic; body of the answer: `SubscriptionBody`."""

    code: ClassVar[int] = 345

    group: str
    topic: str | None = None


class GroupConfigOf(Header, kw_only=True):
    """One group; body of the answer: `GroupConfig`."""

    code: ClassVar[int] = 352

    group: str


class ForbidGroup(Header, kw_only=True):
    """Lets a group read a topic or not; body of the answer: `GroupForbidden`."""

    code: ClassVar[int] = 353

    group: str
    topic: str
    readable: bool | None = None


class QueryAssignment(Header, kw_only=True):
    """Which queues a member gets; body `AssignmentQuery`, of the answer `AssignmentBody`."""

    code: ClassVar[int] = 400


class SetRequestMode(Header, kw_only=True):
    """Sets whether a group pulls or pops; body `RequestMode`."""

    code: ClassVar[int] = 401


class AllRequestModes(Header, kw_only=True):
    """The modes of all groups, for slaves; body of the answer: `RequestModes`."""

    code: ClassVar[int] = 402
