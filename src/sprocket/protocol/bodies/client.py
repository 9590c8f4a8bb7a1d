"""Bodies about clients: heartbeats, connections and queue locks.

Source: HeartbeatData, ConsumerData, ProducerData, SubscriptionData, ConsumerConnection,
ProducerConnection, ProducerTableInfo, CheckClientRequestBody, Lock… and UnlockBatchRequestBody of
RocketMQ 4.9 and 5.x; recorded frames.
"""

from __future__ import annotations

from typing import Any

from sprocket.protocol.bodies.body import Body, Queue, always
from sprocket.protocol.command import Int, Long

#: The C++ client sends numbers for these. Source: ConsumeType.h of rocketmq-client-cpp.
_BY_NUMBER = {
    "consumeType": ("CONSUME_ACTIVELY", "CONSUME_PASSIVELY", "CONSUME_POP"),
    "messageModel": ("BROADCASTING", "CLUSTERING"),
    "consumeFromWhere": (
        "CONSUME_FROM_LAST_OFFSET",
        "CONSUME_FROM_LAST_OFFSET_AND_FROM_MIN_WHEN_BOOT_FIRST",
        "CONSUME_FROM_MIN_OFFSET",
        "CONSUME_FROM_MAX_OFFSET",
        "CONSUME_FROM_FIRST_OFFSET",
        "CONSUME_FROM_TIMESTAMP",
    ),
}


class SubscriptionData(Body):
    """A group's subscription of a topic.

    Attributes:
        code_set, tags_set: the hashes of the tags, and the tags; empty for all.
        expression_type: `TAG` or `SQL92`.
        sub_string: the expression.
        sub_version: when it was made, ms since 1970 UTC; the newest counts.
    """

    class_filter_mode: bool = always(False)
    code_set: list[Long] = always([])
    expression_type: str | None = always("TAG")
    sub_string: str | None = None
    sub_version: Long = always(0)
    tags_set: list[str] = always([])
    topic: str = always("")


class ConsumerData(Body):
    """A consumer group that a client is in.

    Attributes:
        consume_from_where: `CONSUME_FROM_LAST_OFFSET`, `…_FIRST_OFFSET`, `…_TIMESTAMP`.
        consume_type: `CONSUME_PASSIVELY` (push), `CONSUME_ACTIVELY` (pull), `CONSUME_POP`.
        message_model: `CLUSTERING`, `BROADCASTING`.
    """

    consume_from_where: str | None = None
    consume_type: str | None = None
    group_name: str = always("")
    message_model: str | None = None
    subscriptions: list[SubscriptionData] = always([], name="subscriptionDataSet")
    unit_mode: bool = always(False)


class ProducerData(Body):
    """A producer group that a client is in."""

    group_name: str = always("")


class HeartbeatBody(Body):
    """Body of `Heartbeat`: a client and all its groups.

    Attributes:
        heartbeat_fingerprint: of the subscriptions; with 0 or None they are always read.
        without_sub: the subscriptions are left out, and the fingerprint replaces them.
    """

    client_id: str = always("", name="clientID")
    consumers: list[ConsumerData] = always([], name="consumerDataSet")
    heartbeat_fingerprint: Long | None = None
    producers: list[ProducerData] = always([], name="producerDataSet")
    without_sub: bool | None = None

    @classmethod
    def _mended(cls, value: Any) -> Any:
        consumers = value.get("consumerDataSet") if isinstance(value, dict) else None
        for consumer in consumers if isinstance(consumers, list) else ():
            if isinstance(consumer, dict):
                for field, names in _BY_NUMBER.items():
                    number = consumer.get(field)
                    if isinstance(number, int) and 0 <= number < len(names):
                        consumer[field] = names[number]
        return value


class ProxiedClientBody(Body):
    """A client of a proxy: what it would tell a broker over a connection of its own.

    Attributes:
        address: `ip:port` of its connection to the proxy.
    """

    address: str = always("")
    heartbeat: HeartbeatBody | None = None
    language: str = always("")
    version: Int = always(0)


class ProxiedClientsBody(Body):
    """Body of `ProxiedClients`.

    Attributes:
        clients: those that are new or have changed.
        left: the ids of those that are gone.
    """

    clients: list[ProxiedClientBody] = always([])
    left: list[str] = always([])


class CheckClientBody(Body):
    """Body of `CheckClient`."""

    client_id: str | None = None
    group: str | None = None
    namespace: str | None = None
    subscription_data: SubscriptionData | None = None


class ClientConnection(Body):
    """One connected client. Source: Connection."""

    client_addr: str = always("")
    client_id: str = always("")
    language: str | None = None
    version: Long = always(0)


class ConsumerConnection(Body):
    """Reply body of `ConsumerConnections`."""

    connection_set: list[ClientConnection] = always([])
    consume_from_where: str | None = None
    consume_type: str | None = None
    message_model: str | None = None
    subscription_table: dict[str, SubscriptionData] = always({})


class ProducerConnection(Body):
    """Reply body of `ProducerConnections`."""

    connection_set: list[ClientConnection] = always([])


class ProducerInfo(Body):
    """One producer. `remote_ip`: with Java's leading slash."""

    client_id: str = always("")
    language: str | None = None
    last_update_timestamp: Long = always(0)
    remote_ip: str = always("", name="remoteIP")
    version: Long = always(0)


class ProducerTable(Body):
    """Reply body of `AllProducers`: by group."""

    data: dict[str, list[ProducerInfo]] = always({})


class LockBody(Body):
    """Body of `LockQueues` and `UnlockQueues`."""

    client_id: str | None = None
    consumer_group: str | None = None
    mq_set: list[Queue] = always([])
    only_this_broker: bool | None = None


class LockedBody(Body):
    """Reply body of `LockQueues`: the queues that the client holds now."""

    locked: list[Queue] = always([], name="lockOKMQSet")


class ConsumeDirectlyResult(Body):
    """Reply body of `ConsumeDirectly`. `consume_result`: `CR_SUCCESS`, `CR_LATER`, …."""

    auto_commit: bool = always(True)
    consume_result: str | None = None
    order: bool = always(False)
    remark: str | None = None
    spent_time_mills: Long = always(0)
