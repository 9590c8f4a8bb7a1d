"""Volumes: how many messages a topic got, and how many its groups got."""

from __future__ import annotations

from typing import NamedTuple

from sprocket.admin import topics
from sprocket.admin.caller import Caller
from sprocket.base.errors import SystemFailure
from sprocket.protocol.bodies import BrokerStatsBody, GroupList, StatsItem
from sprocket.protocol.requests.admin import BrokerStats
from sprocket.protocol.requests.topic import TopicConsumers

_IN, _OUT = "TOPIC_PUT_NUMS", "GROUP_GET_NUMS"


class TopicVolume(NamedTuple):
    """Numbers of messages of a topic, on all its brokers together.

    Attributes:
        group: the group that got them; None for messages sent to the topic.
        minute, hour, day: number of messages in the last minute, hour, day.
        per_second: messages per second, over the last minute.
    """

    group: str | None
    minute: int
    hour: int
    day: int
    per_second: float


async def of_topic(caller: Caller, topic: str) -> list[TopicVolume]:
    """The messages that a topic got, then those that each consuming group got.

    Raises:
        TopicNotFound: no broker has it.
    """
    masters = await topics.masters_of(caller, topic)
    volumes = [await _sum(caller, masters, _IN, topic)]
    for group in await groups_of(caller, topic):
        told = await _sum(caller, masters, _OUT, f"{topic}@{group}")
        volumes.append(told._replace(group=group))
    return volumes


async def groups_of(caller: Caller, topic: str) -> list[str]:
    """Groups that consume a topic, or did, sorted.

    Raises:
        TopicNotFound: no broker has it.
    """
    masters = await topics.masters_of(caller, topic)
    replies = await caller.ask_each(masters, TopicConsumers(topic=topic))
    return sorted({g for each in replies.values() for g in GroupList.decode(each.body).group_list})


async def _sum(caller: Caller, masters: dict[str, str], name: str, key: str) -> TopicVolume:
    minute, hour, day, per_second = 0, 0, 0, 0.0
    header = BrokerStats(stats_name=name, stats_key=key)
    # A broker without recent figures for this key fails.
    for reply in (await caller.ask_each(masters, header, absent=(SystemFailure,))).values():
        told = BrokerStatsBody.decode(reply.body)
        nothing = StatsItem()
        last = told.stats_minute or nothing
        minute += last.sum
        per_second += last.tps
        hour += (told.stats_hour or nothing).sum
        day += (told.stats_day or nothing).sum
    return TopicVolume(None, minute, hour, day, per_second)
