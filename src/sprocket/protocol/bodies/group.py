"""Consumer groups at a broker.

Source: SubscriptionGroupConfig, SubscriptionGroupWrapper, GroupForbidden, MessageRequestMode…,
QueryAssignment… of RocketMQ 4.9 and 5.x; recorded frames.
"""

from __future__ import annotations

from typing import Any

import msgspec

from sprocket.protocol.bodies.body import Body, DataVersion, Queue, always
from sprocket.protocol.bodies.client import SubscriptionData
from sprocket.protocol.command import Long


class GroupConfig(Body):
    """A consumer group at a broker. In 4.9 it has neither attributes nor retry policy.

    Attributes:
        broker_id: the number of the broker, master or slave, that it reads from.
        group_retry_policy: `{"type": "CUSTOMIZED"}` by default; kept as received.
        retry_max_times: redeliveries of a message before it becomes a dead letter.
        retry_queue_nums: number of queues of its retry topic.
    """

    attributes: dict[str, str] = always({})
    broker_id: Long = always(0)
    consume_broadcast_enable: bool = always(True)
    consume_enable: bool = always(True)
    consume_from_min_enable: bool = always(True)
    consume_message_orderly: bool = always(False)
    consume_timeout_minute: Long = always(15)
    group_name: str = always("")
    group_retry_policy: dict[str, Any] = always({"type": "CUSTOMIZED"})
    group_sys_flag: Long = always(0)
    notify_consumer_ids_changed_enable: bool = always(True)
    retry_max_times: Long = always(16)
    retry_queue_nums: Long = always(1)
    subscription_data_set: list[dict[str, Any]] | None = None
    which_broker_when_consume_slowly: Long = always(1)


class GroupConfigList(Body):
    """Body of `CreateGroups`."""

    group_config_list: list[GroupConfig] = always([])


class GroupTable(Body):
    """Reply body of `AllGroupConfigs`: groups by name. `forbidden_table`: group, topic, bits."""

    data_version: DataVersion = msgspec.field(default_factory=lambda: DataVersion())
    forbidden_table: dict[str, dict[str, Long]] = always({})
    subscription_group_table: dict[str, GroupConfig] = always({})


class GroupForbidden(Body):
    """Reply body of `ForbidGroup`."""

    group: str | None = None
    readable: bool | None = None
    topic: str | None = None


class SubscriptionBody(Body):
    """Reply body of `GroupSubscription`."""

    group: str | None = None
    subscription_data: SubscriptionData | None = None
    topic: str | None = None


class AssignmentQuery(Body):
    """Body of `QueryAssignment`."""

    client_id: str | None = None
    consumer_group: str | None = None
    message_model: str | None = None
    strategy_name: str | None = None
    topic: str | None = None


class Assignment(Body):
    """One assigned queue; number -1 means all queues of the broker. `mode`: PULL, POP."""

    attachments: dict[str, str] | None = None
    message_queue: Queue | None = None
    mode: str | None = None


class AssignmentBody(Body):
    """Reply body of `QueryAssignment`; without a list the client must rebalance by itself."""

    message_queue_assignments: list[Assignment] | None = None


class RequestMode(Body):
    """Body of `SetRequestMode`."""

    consumer_group: str | None = None
    mode: str = always("PULL")
    pop_share_queue_num: Long = always(0)
    topic: str | None = None


class RequestModes(Body):
    """Reply body of `AllRequestModes`: by topic and group."""

    message_request_mode_map: dict[str, dict[str, RequestMode]] = always({})
