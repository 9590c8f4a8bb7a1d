"""Lite topics: popping from them, subscriptions, and what operators ask.

Source: PopLiteMessageRequestHeader, LiteSubscriptionCtlRequestHeader, NotifyUnsubscribeLite… and
Get…Lite…RequestHeader of RocketMQ 5.5.
"""

from __future__ import annotations

from typing import ClassVar

from sprocket.protocol.command import Header, Int, Long


class PopLiteReply(Header, kw_only=True):
    """When and where popped messages become visible again; for each, how often it came before."""

    pop_time: Long
    invisible_time: Long
    revive_qid: Int
    start_offset_info: str | None = None
    msg_offset_info: str | None = None
    order_count_info: str | None = None


class PopLite(Header, kw_only=True):
    """Takes messages of the lite topics that a client subscribes; reply body: records."""

    code: ClassVar[int] = 200070
    reply: ClassVar[type[Header]] = PopLiteReply

    client_id: str
    consumer_group: str
    topic: str
    max_msg_num: Int
    invisible_time: Long
    poll_time: Long
    born_time: Long
    attempt_id: str | None = None


class ChangeLiteSubscription(Header, kw_only=True):
    """Adds or removes lite topics of clients; request body: `LiteSubscriptionBody`."""

    code: ClassVar[int] = 200071


class NotifyUnsubscribeLite(Header, kw_only=True):
    """Tells a client that it no longer subscribes a lite topic, since another one does alone."""

    code: ClassVar[int] = 200073

    lite_topic: str
    consumer_group: str
    client_id: str


class BrokerLiteInfo(Header, kw_only=True):
    """Asks for the sizes of all that belongs to lite topics; reply body: `BrokerLiteFigures`."""

    code: ClassVar[int] = 200074


class ParentTopicInfo(Header, kw_only=True):
    """Asks for a parent topic's lite topics and groups; reply body: `ParentTopicFigures`."""

    code: ClassVar[int] = 200075

    topic: str


class LiteTopicInfo(Header, kw_only=True):
    """Asks for offsets and subscribers of a lite topic; reply body: `LiteTopicFigures`."""

    code: ClassVar[int] = 200076

    parent_topic: str | None = None
    lite_topic: str | None = None


class LiteClientInfo(Header, kw_only=True):
    """Asks which lite topics a client subscribes; reply body: `LiteClientFigures`."""

    code: ClassVar[int] = 200077

    parent_topic: str | None = None
    group: str | None = None
    client_id: str | None = None
    max_count: Int = 1000


class LiteGroupInfo(Header, kw_only=True):
    """Asks for a group's lag, in all lite topics or in one; reply body: `LiteGroupFigures`."""

    code: ClassVar[int] = 200078

    group: str
    lite_topic: str | None = None
    top_k: Int = 0


class TriggerLiteDispatch(Header, kw_only=True):
    """Looks again for messages of all that a group, or one of its clients, subscribes."""

    code: ClassVar[int] = 200079

    group: str
    client_id: str | None = None
