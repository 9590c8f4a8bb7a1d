"""Which brokers know a topic or a group."""

from __future__ import annotations

import pytest

from sprocket.admin import groups, known, topics
from sprocket.base.errors import GroupNotFound, TopicNotFound
from tests.admin.parts import make_topic
from tests.admin.test_topics import operating
from tests.support import run


def test_topics_and_groups_are_known_while_they_are_there() -> None:
    async def story() -> None:
        async with operating() as (_, caller):
            masters = await caller.masters()
            await make_topic(caller, "orders", 1)
            await groups.create(caller, "billing")
            assert await known.of_topic(caller, "orders", masters) == ["broker-a"]
            assert await known.of_group(caller, "billing", masters) == ["broker-a"]
            await known.check_topic(caller, "orders")
            await known.check_group(caller, "billing")
            assert await topics.delete(caller, "orders") == ["broker-a"]
            assert await groups.delete(caller, "billing") == ["broker-a"]
            assert await topics.delete(caller, "orders") == []
            assert await groups.delete(caller, "billing") == []
            with pytest.raises(TopicNotFound, match="no broker knows a topic orders"):
                await known.check_topic(caller, "orders")
            with pytest.raises(GroupNotFound, match="no broker knows a consumer group billing"):
                await known.check_group(caller, "billing")

    run(story())
