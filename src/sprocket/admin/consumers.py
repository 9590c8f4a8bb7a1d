"""Requests to single consumers through their broker: their state, or to consume one message."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import NamedTuple

from sprocket.admin import groups, resend
from sprocket.admin.caller import Caller
from sprocket.admin.groups import GroupMember
from sprocket.base.errors import ConsumerOffline, ReplyError, TransportError
from sprocket.message.message import StoredMessage
from sprocket.message.queue import QueueId
from sprocket.protocol.bodies import ConsumeDirectlyResult, RunningInfo
from sprocket.protocol.requests.client import ConsumeDirectly, ConsumerRunning


class ConsumeOutcome(NamedTuple):
    """The result of a consumer for a message.

    Attributes:
        result: `CR_SUCCESS`, `CR_LATER`, `CR_ROLLBACK`, `CR_COMMIT`, `CR_THROW_EXCEPTION`,
            `CR_RETURN_NULL`.
        remark: the text of the exception, if the listener raised one.
        spent_ms: how long the listener took.
    """

    client_id: str
    result: str
    remark: str | None
    spent_ms: int


async def running(
    caller: Caller, group: str, client_id: str, *, with_stacks: bool = False
) -> RunningInfo:
    """The state of a member of a group: its queues, rates and settings.

    Raises:
        ConsumerOffline: it is not online.
        ReplyError: it does not answer.
    """
    header = ConsumerRunning(consumer_group=group, client_id=client_id, jstack_enable=with_stacks)
    address = await _address(caller, group, client_id)
    return RunningInfo.decode((await caller.ask(address, header)).body)


async def subscribed(
    caller: Caller, group: str, members: Iterable[GroupMember]
) -> dict[str, dict[str, str] | None]:
    """Each member's own subscriptions: expressions by topic, by client id.

    A broker keeps one subscription for the whole group; members may differ from it. The value is
    None for a member that does not answer.
    """
    masters = await caller.masters()

    async def asked(member: GroupMember) -> dict[str, str] | None:
        header = ConsumerRunning(consumer_group=group, client_id=member.client_id)
        try:
            reply = await caller.ask(masters[member.brokers[0]], header)
        except (KeyError, ReplyError, TransportError):
            return None
        told = RunningInfo.decode(reply.body).subscription_set
        return {each.topic: each.sub_string or "*" for each in told}

    members = list(members)
    answers = await asyncio.gather(*map(asked, members))
    return {member.client_id: told for member, told in zip(members, answers, strict=True)}


async def owners(caller: Caller, group: str) -> dict[QueueId, str]:
    """The client id of the member that holds each queue.

    Raises:
        ConsumerOffline: no member is online.
        ReplyError: one of them does not answer.
    """
    held: dict[QueueId, str] = {}
    for member in (await groups.online(caller, group)).members:
        info = await running(caller, group, member.client_id)
        for queue in (*info.mq_table, *(info.mq_pop_table or {})):
            held[QueueId(queue.topic, queue.broker_name, queue.queue_id)] = member.client_id
    return held


async def consume_directly(
    caller: Caller, group: str, message: StoredMessage, *, client_id: str | None = None
) -> ConsumeOutcome:
    """Has a member consume a stored message now; no offset changes.

    Args:
        client_id: the member; None for the first one.

    Raises:
        UsageError: the message's broker is not registered.
        ConsumerOffline: no such member is online.
        ReplyError: there is no such message, or the member does not answer.
    """
    broker = message.queue.broker
    address = (await caller.masters(broker=broker))[broker]
    if client_id is None:
        client_id = (await groups.online(caller, group)).members[0].client_id
    header = ConsumeDirectly(
        consumer_group=group,
        client_id=client_id,
        msg_id=resend.place_of(message),
        topic=message.topic,
    )
    reply = await caller.ask(address, header)
    told = ConsumeDirectlyResult.decode(reply.body)
    return ConsumeOutcome(client_id, told.consume_result or "", told.remark, told.spent_time_mills)


async def _address(caller: Caller, group: str, client_id: str) -> str:
    """A broker that the member is connected to."""
    masters = await caller.masters()
    for member in (await groups.online(caller, group)).members:
        if member.client_id == client_id:
            return masters[member.brokers[0]]
    raise ConsumerOffline(f"no member {client_id} of consumer group {group} is online")
