"""Makes the topics of task queues, and sees whether they have priorities.

A topic of the type PRIORITY has a queue for each priority, and pops begin with the highest. Brokers
before RocketMQ 5.4 do not know the type: there the topic is like any other.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from sprocket.admin import topic_changes
from sprocket.admin.caller import BrokersFailed, Caller
from sprocket.base.errors import NoPermission, ReplyError, SprocketError
from sprocket.base.ports import Entropy
from sprocket.client.config import ClientConfig
from sprocket.client.sending.fixed_queue import QueueSelector
from sprocket.message.message import Message
from sprocket.message.queue import QueueId
from sprocket.message.topic_attributes import MESSAGE_TYPE, MessageType, topic_type
from sprocket.remoting.pool import Pool

logger = logging.getLogger(__name__)


async def make(
    client: ClientConfig,
    nameservers: Sequence[str],
    topic: str,
    queues: int,
    max_priority: int,
) -> None:
    """Makes a topic at all brokers.

    Args:
        queues: how many it has on each broker, if it has no priorities.
        max_priority: the highest priority of its messages; 0 for none.

    Raises:
        BrokersFailed, TransportError, ReplyError: a broker did not answer, or refused.
    """
    count = max_priority + 1 if max_priority else queues
    plain = topic_changes.TopicSettings(read_queues=count, write_queues=count)
    async with _pool(client) as pool:
        caller = Caller(pool, nameservers)
        if not max_priority:
            await topic_changes.create(caller, topic, wanted=plain)
            return
        wanted = plain._replace(attributes={MESSAGE_TYPE: MessageType.PRIORITY.value})
        try:
            await topic_changes.create(caller, topic, wanted=wanted)
        except (ReplyError, BrokersFailed) as error:
            if not _is_refused(error):
                raise
            await topic_changes.create(caller, topic, wanted=plain)
            logger.warning(
                "topic %s has no priorities, which brokers know from RocketMQ 5.4 on: %s",
                topic, error,
            )  # fmt: skip


async def check_priorities(
    client: ClientConfig, nameservers: Sequence[str], topic: str, max_priority: int
) -> None:
    """Logs a warning if a topic that exists has no priorities, or too few.

    A user who may not read the settings of topics learns nothing.
    """
    async with _pool(client) as pool:
        try:
            found = await topic_changes.settings(Caller(pool, nameservers), topic)
        except SprocketError as error:
            logger.debug("it is not known whether topic %s has priorities: %s", topic, error)
            return
    without = [
        broker
        for broker, config in found.items()
        if topic_type(config.attributes) is not MessageType.PRIORITY
        or min(config.read_queue_nums, config.write_queue_nums) <= max_priority
    ]
    if without:
        logger.warning(
            "topic %s has no priorities up to %d at %s: sprocket topic update %s "
            "--message-type PRIORITY --queues %d",
            topic, max_priority, ", ".join(without), topic, max_priority + 1,
        )  # fmt: skip


def queue_of_priority(priority: int, entropy: Entropy) -> QueueSelector:
    """Chooses a broker, and there the queue of a priority, for messages that cannot name one."""

    def choose(queues: Sequence[QueueId], _: Message) -> QueueId:
        brokers = sorted({each.broker for each in queues})
        broker = brokers[entropy.below(len(brokers))]
        mine = sorted((each for each in queues if each.broker == broker), key=lambda q: q.number)
        return mine[min(priority, len(mine) - 1)]

    return choose


def _pool(client: ClientConfig) -> Pool:
    return Pool(signer=client.signer(), tls=client.tls_of_client())


def _is_refused(error: ReplyError | BrokersFailed) -> bool:
    """Whether a broker refused what it was asked, other than for the user's lack of rights."""
    failures = list(error.failures.values()) if isinstance(error, BrokersFailed) else [error]
    return any(isinstance(e, ReplyError) and not isinstance(e, NoPermission) for e in failures)
