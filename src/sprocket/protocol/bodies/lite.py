"""The bodies of requests about lite topics.

Source: LiteSubscriptionCtlRequestBody, LiteSubscriptionDTO, OffsetOption, Get…Lite…ResponseBody
and LiteLagInfo of RocketMQ 5.5.
"""

from __future__ import annotations

import msgspec

from sprocket.protocol.bodies.body import Body, always
from sprocket.protocol.command import Long

#: What a client does to its subscription: `LiteSubscriptionEntry.action`.
PARTIAL_ADD, PARTIAL_REMOVE = "PARTIAL_ADD", "PARTIAL_REMOVE"
COMPLETE_ADD, COMPLETE_REMOVE = "COMPLETE_ADD", "COMPLETE_REMOVE"

#: How a new subscription begins: `LiteOffsetOption.type`; and the values of a policy.
POLICY, OFFSET, TAIL, TIME = "POLICY", "OFFSET", "TAIL_N", "TIMESTAMP"
POLICY_LAST, POLICY_MIN, POLICY_MAX = 0, 1, 2


class LiteOffsetOption(Body):
    """Where a new subscription begins."""

    type: str | None = None
    value: Long = always(0)


class LiteSubscriptionEntry(Body):
    """A change of one client's subscription."""

    action: str | None = None
    client_id: str | None = None
    group: str | None = None
    lite_topic_set: list[str] | None = None
    offset_option: LiteOffsetOption | None = None
    topic: str | None = None
    version: Long = always(0)


class LiteSubscriptionBody(Body):
    """Request body of `ChangeLiteSubscription`."""

    subscription_set: list[LiteSubscriptionEntry] = always([])


class BrokerLiteFigures(Body):
    """Reply body of `BrokerLiteInfo`.

    Attributes:
        group_meta: by parent topic the groups that are bound to it.
        topic_meta: by parent topic the minutes that its lite topics live; -1 for ever.
    """

    cq_table_size: Long = always(0)
    current_lmq_num: Long = always(0)
    event_map_size: Long = always(0)
    group_meta: dict[str, list[str]] = always({})
    lite_subscription_count: Long = always(0)
    max_lmq_num: Long = always(0)
    offset_table_size: Long = always(0)
    order_info_count: Long = always(0)
    store_type: str | None = None
    topic_meta: dict[str, Long] = always({})


class ParentTopicFigures(Body):
    """Reply body of `ParentTopicInfo`."""

    groups: list[str] | None = None
    lite_topic_count: Long = always(0)
    lmq_num: Long = always(0)
    topic: str | None = None
    ttl: Long = always(0)


class ClientOfGroup(Body):
    """A client and its group; client `*` is every one of a group that subscribes all."""

    client_id: str | None = None
    group: str | None = None


class LiteOffsets(Body):
    """The offsets of a lite topic; source: TopicOffset."""

    last_update_timestamp: Long = always(0)
    max_offset: Long = always(0)
    min_offset: Long = always(0)


class LiteTopicFigures(Body):
    """Reply body of `LiteTopicInfo`."""

    lite_topic: str | None = None
    parent_topic: str | None = None
    sharding_to_broker: bool = always(False)
    subscriber: list[ClientOfGroup] = always([])
    topic_offset: LiteOffsets | None = None


class LiteClientFigures(Body):
    """Reply body of `LiteClientInfo`; the count is -1 for an unknown client."""

    client_id: str | None = None
    group: str | None = None
    last_access_time: Long = always(0)
    last_consume_time: Long = always(0)
    lite_topic_count: Long = always(0)
    lite_topic_set: list[str] | None = None
    parent_topic: str | None = None


class LiteLag(Body):
    """The lag of a group in one lite topic, and when its first message was stored."""

    earliest_unconsumed_timestamp: Long = always(-1)
    lag_count: Long = always(0)
    lite_topic: str | None = None


class LiteGroupOffsets(Body):
    """The offsets of a group in one lite topic; source: OffsetWrapper."""

    broker_offset: Long = always(0)
    consumer_offset: Long = always(0)
    last_timestamp: Long = always(0)
    pull_offset: Long = always(0)


class LiteGroupFigures(Body):
    """Reply body of `LiteGroupInfo`."""

    earliest_unconsumed_timestamp: Long = always(-1)
    group: str | None = None
    lag_count_top_k: list[LiteLag] | None = msgspec.field(default=None, name="lagCountTopK")
    lag_timestamp_top_k: list[LiteLag] | None = msgspec.field(default=None, name="lagTimestampTopK")
    lite_topic: str | None = None
    lite_topic_offset_wrapper: LiteGroupOffsets | None = None
    parent_topic: str | None = None
    total_lag_count: Long = always(0)
