"""Checks which brokers know a topic or a group.

Callers check this first, so that a misspelt name is an error, not an empty result.
"""

from __future__ import annotations

from collections.abc import Mapping

from sprocket.admin.caller import Caller
from sprocket.base.errors import GroupNotFound, TopicNotFound
from sprocket.protocol.bodies import GroupTable, TopicList
from sprocket.protocol.requests.group import AllGroupConfigs, GroupTopics
from sprocket.protocol.requests.topic import TopicStats


async def check_topic(caller: Caller, topic: str) -> None:
    """Raises TopicNotFound if no broker knows the topic."""
    if not await of_topic(caller, topic, await caller.masters()):
        raise TopicNotFound(f"no broker knows a topic {topic}")


async def check_group(caller: Caller, group: str) -> None:
    """Raises GroupNotFound if no broker knows the group."""
    if not await of_group(caller, group, await caller.masters()):
        raise GroupNotFound(f"no broker knows a consumer group {group}")


async def of_topic(caller: Caller, topic: str, masters: Mapping[str, str]) -> list[str]:
    """Names of the brokers that have a topic."""
    return list(await caller.ask_each(masters, TopicStats(topic=topic), absent=(TopicNotFound,)))


async def of_group(caller: Caller, group: str, masters: Mapping[str, str]) -> list[str]:
    """Names of the brokers that have a group's settings, or offsets of it in some topic."""

    async def is_known(_: str, address: str) -> bool:
        table = GroupTable.decode((await caller.ask(address, AllGroupConfigs())).body)
        if group in table.subscription_group_table:
            return True
        topics = TopicList.decode((await caller.ask(address, GroupTopics(group=group))).body)
        return bool(topics.topic_list)

    return [broker for broker, knows in (await caller.at_each(masters, is_known)).items() if knows]
