"""Topics are listed, shown, made, changed and deleted."""

from __future__ import annotations

import pytest

from sprocket.base.errors import TopicNotFound, UsageError
from sprocket.testing.cluster import Cluster
from tests.console.parts import Operating, operated


def test_a_topic_from_its_making_to_its_end() -> None:
    async def test(do: Operating, cluster: Cluster) -> None:
        tried = await do("topics.create", topic="orders", queues=4, dry_run=True)
        assert [(each.broker, each.before, each.after.read_queues) for each in tried.changes] == [
            ("broker-0", None, 4), ("broker-1", None, 4),
        ]  # fmt: skip
        with pytest.raises(TopicNotFound):
            await do("topics.describe", topic="orders")
        made = await do("topics.create", topic="orders", queues=4)
        assert made.changes == tried.changes
        shown = await do("topics.describe", topic="orders")
        assert [each.write_queues for each in shown.brokers] == [4, 4]

        only = {"topic": "orders", "permission": "r", "broker": "broker-1"}
        tried = await do("topics.change", **only, dry_run=True)
        assert [(each.before.permission, each.after.permission) for each in tried.changes] == [
            ("rw", "r")
        ]
        assert (await do("topics.describe", topic="orders")).brokers == shown.brokers
        await do("topics.change", **only)
        shown = await do("topics.describe", topic="orders")
        assert [each.permission for each in shown.brokers] == ["rw", "r"]

        page = await do("topics.queues", topic="orders", limit=3)
        assert ([each.queue for each in page.items], page.total) == ([0, 1, 2], 8)

        tried = await do("topics.delete", topic="orders", dry_run=True)
        assert [each.broker for each in tried.changes] == ["broker-0", "broker-1"]
        assert [each.topic for each in (await do("topics.list")).items] == ["orders"]
        await do("topics.delete", topic="orders")
        assert (await do("topics.list")).items == []

    operated(test, brokers=2)


def test_what_contradicts_itself_is_refused() -> None:
    async def test(do: Operating, cluster: Cluster) -> None:
        with pytest.raises(UsageError, match="queues, or read_queues"):
            await do("topics.create", topic="orders", queues=4, read_queues=2)
        with pytest.raises(UsageError, match="name what is to change"):
            await do("topics.change", topic="orders")
        with pytest.raises(UsageError, match="illegal characters"):
            await do("topics.create", topic="a b", dry_run=True)

    operated(test)


def test_what_a_topic_got_is_told() -> None:
    async def test(do: Operating, cluster: Cluster) -> None:
        await do("topics.create", topic="orders")
        for _ in range(3):
            await do("messages.send", topic="orders", body="x")
        (all_of_them,) = (await do("topics.volume", topic="orders")).volumes
        assert (all_of_them.group, all_of_them.day) == (None, 3)

    operated(test)
