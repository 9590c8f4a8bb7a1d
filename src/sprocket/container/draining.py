"""What a broker that is to leave still has for somebody.

It takes no new messages (`broker.permission` is 4), so once nothing remains, nothing comes. What
nobody can get any more counts as well: a topic without a group, and dead letters, are for an
operator to look at.
"""

from __future__ import annotations

from sprocket.base.deadline import Deadline
from sprocket.base.errors import ReplyError
from sprocket.container.spreading import Asks
from sprocket.message.topic import SCHEDULE, is_dead_letter_topic, is_system_topic
from sprocket.protocol.bodies import (
    ConsumeStatsList,
    DelayOffsets,
    KvTable,
    TimerMetricsBody,
    TopicStatsTable,
    TopicTable,
)
from sprocket.protocol.command import Command, Header
from sprocket.protocol.requests.admin import BrokerState
from sprocket.protocol.requests.group import AllConsumeStats
from sprocket.protocol.requests.replica import AllDelayOffsets, TimerMetrics
from sprocket.protocol.requests.topic import AllTopicConfigs, TopicStats

_ASK_SECONDS = 20.0

UNREAD = "messages that groups have not consumed"
NOBODYS = "messages of topics that no group consumes"
DEAD = "dead letters"
DELAYED = "messages that wait for their time"
UNDECIDED = "undecided transactions"


class Remaining:
    """Asks one broker what remains.

    Args:
        ask: sends requests, signed if the broker wants that.
    """

    def __init__(self, ask: Asks, address: str) -> None:
        self._ask, self._address = ask, address

    async def counts(self) -> dict[str, int]:
        """How much of what remains; empty if nothing does.

        Raises:
            SprocketError: the broker does not answer, or refuses.
        """
        stats = ConsumeStatsList.decode((await self._request(AllConsumeStats(is_order=False))).body)
        read = {
            queue.topic
            for groups in stats.consume_stats_list
            for each in groups.values()
            for progress in each
            for queue in progress.offset_table
        }
        found = {UNREAD: stats.total_diff, NOBODYS: 0, DEAD: 0}
        table = TopicTable.decode((await self._request(AllTopicConfigs())).body)
        for topic in table.topic_config_table:
            if topic not in read and not is_system_topic(topic):
                key = DEAD if is_dead_letter_topic(topic) else NOBODYS
                found[key] += sum((await self._spans(topic)).values())
        found[DELAYED] = await self._levels() + await self._timers()
        state = KvTable.decode((await self._request(BrokerState())).body).table
        found[UNDECIDED] = int(state.get("transactionsPending", "0"))
        return {what: count for what, count in found.items() if count}

    async def _spans(self, topic: str) -> dict[int, int]:
        """Messages in each queue of a topic."""
        reply = await self._request(TopicStats(topic=topic))
        rows = TopicStatsTable.decode(reply.body).offset_table.items()
        return {queue.queue_id: each.max_offset - each.min_offset for queue, each in rows}

    async def _levels(self) -> int:
        """Messages that wait in the delay levels: level 1 is queue 0."""
        reply = await self._request(TopicStats(topic=SCHEDULE))
        ends = {
            queue.queue_id: each.max_offset
            for queue, each in TopicStatsTable.decode(reply.body).offset_table.items()
        }
        reply = await self._request(AllDelayOffsets())
        passed = DelayOffsets.decode(reply.body).offset_table
        return sum(max(0, end - passed.get(queue + 1, 0)) for queue, end in ends.items())

    async def _timers(self) -> int:
        try:
            body = TimerMetricsBody.decode((await self._request(TimerMetrics())).body)
        except ReplyError:  # timers are switched off
            return 0
        return sum(each.count for each in body.timing_count.values())

    async def _request(self, header: Header) -> Command:
        return await self._ask(self._address, header, deadline=Deadline.after(_ASK_SECONDS))
