"""Checks that the members of a group have the same subscriptions as a new member.

A broker keeps one subscription for each group and topic, the newest. So members with different tags
lose messages to each other. Brokers log this; a consumer with `alike_only` checks it at its start.

Source: ConsumerManager.registerConsumer, ConsumerConnection of RocketMQ 5.x.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping

from sprocket.base.deadline import Deadline
from sprocket.base.errors import ConsumerOffline, SprocketError, UsageError
from sprocket.client.base.subscription import Subscription
from sprocket.client.config import ClientConfig
from sprocket.client.session.session import Session
from sprocket.message.topic import is_retry_topic
from sprocket.protocol.bodies import ConsumerConnection, SubscriptionData
from sprocket.protocol.codes import MASTER
from sprocket.protocol.requests.client import ConsumerConnections

logger = logging.getLogger(__name__)


async def check_agreement(
    session: Session, group: str, *, wanted: Mapping[str, Subscription], config: ClientConfig
) -> None:
    """Compares subscriptions with those of the members that the topics' brokers know.

    Brokers that cannot be reached are ignored.

    Raises:
        UsageError: members have other subscriptions; the message names the differences.
    """
    deadline = Deadline.after_ms(config.call_timeout_ms)
    for topic in wanted:
        try:
            await session.routes.of(topic, deadline)
        except SprocketError as error:
            logger.debug("route of %s: %s", topic, error)
    header = ConsumerConnections(consumer_group=group)
    addresses = [each for _, number, each in session.routes.brokers() if number == MASTER]
    replies = await asyncio.gather(
        *(session.pool.ask(each, header, deadline=deadline) for each in addresses),
        return_exceptions=True,
    )
    for address, reply in zip(addresses, replies, strict=True):
        if isinstance(reply, ConsumerOffline):
            continue
        if isinstance(reply, SprocketError):
            logger.info("%s does not list the members of %s: %s", address, group, reply)
            continue
        if isinstance(reply, BaseException):
            raise reply
        members = ConsumerConnection.decode(reply.body)
        if members.connection_set and (odd := discord(wanted, members.subscription_table)):
            raise UsageError(f"members of {group} at {address} subscribe otherwise: {odd}")


def discord(wanted: Mapping[str, Subscription], theirs: Mapping[str, SubscriptionData]) -> str:
    """Describes the differences; returns an empty text if there are none. Pure."""
    differences = []
    for topic in sorted({*wanted, *theirs}):
        if is_retry_topic(topic):
            continue
        mine, other = wanted.get(topic), theirs.get(topic)
        own_words = None if mine is None else mine.filter.expression
        their_words = None if other is None else other.sub_string
        if own_words != their_words:
            differences.append(f"{topic} by {_describe(their_words)}, not {_describe(own_words)}")
    return "; ".join(differences)


def _describe(expression: str | None) -> str:
    return "nothing" if expression is None else repr(expression)
