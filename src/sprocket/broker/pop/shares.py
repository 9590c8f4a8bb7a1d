"""Which queues a member of a group gets from the broker. Pure.

Source: QueryAssignmentProcessor.allocate4Pop, AllocateMessageQueueAveragely and …ByCircle of
RocketMQ 5.3.
"""

from __future__ import annotations

from collections.abc import Sequence

from sprocket.message.queue import QueueId

AVERAGE, CIRCLE = "AVG", "AVG_BY_CIRCLE"
STRATEGIES = (AVERAGE, CIRCLE)
#: The number that stands for all queues of a topic at a broker.
ALL_QUEUES = -1


def share(
    strategy: str, member: str, queues: Sequence[QueueId], members: Sequence[str]
) -> list[QueueId]:
    """The queues that a member pulls: consecutive ones, or dealt out one by one.

    Args:
        queues, members: all of them, sorted; the member is one of them.
    """
    place = members.index(member)
    if strategy == CIRCLE:
        return list(queues[place :: len(members)])
    each, more = divmod(len(queues), len(members))
    start = place * each + min(place, more)
    return list(queues[start : start + each + (place < more)])


def popped_share(
    strategy: str, member: str, queues: Sequence[QueueId], members: Sequence[str], shared: int
) -> list[QueueId]:
    """The queues that a member pops.

    Args:
        shared: of how many next members it pops the queues too. If these are all others, or the
            number is not above 0, it pops all queues of each broker at once.
    """
    if shared <= 0 or shared >= len(members) - 1:
        return [QueueId(topic, broker, ALL_QUEUES) for topic, broker in _brokers(queues)]
    place = members.index(member)
    if len(members) > len(queues):
        return [queues[place % len(queues)]] if queues else []
    others = (members[(place + n) % len(members)] for n in range(shared + 1))
    return [queue for each in others for queue in share(strategy, each, queues, members)]


def _brokers(queues: Sequence[QueueId]) -> list[tuple[str, str]]:
    return list(dict.fromkeys((queue.topic, queue.broker) for queue in queues))
