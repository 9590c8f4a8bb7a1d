"""Request modes: whether a group that lets its brokers decide pulls or pops a topic.

Source: SetConsumeModeSubCommand of RocketMQ 5.x.
"""

from __future__ import annotations

from sprocket.admin.caller import Caller
from sprocket.base.errors import TopicNotFound
from sprocket.message.topic import check_consumer_group, check_topic
from sprocket.protocol.bodies import RequestMode, RequestModes
from sprocket.protocol.requests.group import AllRequestModes, SetRequestMode


async def set_mode(
    caller: Caller,
    topic: str,
    group: str,
    mode: str,
    *,
    shared: int = 0,
    cluster: str | None = None,
    broker: str | None = None,
) -> list[str]:
    """Sets how a group consumes a topic, on all masters that have it, those of a cluster, or one.

    Args:
        mode: `PULL` or `POP`.
        shared: for pops: of how many next members each member pops the queues too; 0: all members
            pop all queues.

    Returns:
        Names of the brokers where it is set.

    Raises:
        UsageError: a name is invalid, or there is no such broker.
        TopicNotFound: no broker has the topic.
        BrokersFailed, TransportError, ReplyError: a broker did not answer, or refused.
    """
    check_topic(topic)
    check_consumer_group(group)
    body = RequestMode(
        consumer_group=group, mode=mode, pop_share_queue_num=shared, topic=topic
    ).encode()
    masters = await caller.masters(cluster=cluster, broker=broker)
    done = await caller.ask_each(masters, SetRequestMode(), body=body, absent=(TopicNotFound,))
    if not done:
        raise TopicNotFound(f"no broker has topic {topic}")
    return list(done)


async def modes(caller: Caller, topic: str, group: str) -> dict[str, RequestMode | None]:
    """The mode of a topic and a group by broker; None where none is set, so the default counts.

    Raises:
        BrokersFailed, TransportError, ReplyError: a broker did not answer, or refused.
    """
    replies = await caller.ask_each(await caller.masters(), AllRequestModes())
    found = {}
    for name, reply in replies.items():
        by_topic = RequestModes.decode(reply.body).message_request_mode_map
        found[name] = by_topic.get(topic, {}).get(group)
    return found
