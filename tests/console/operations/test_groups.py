"""Consumer groups are listed, shown, made, changed and deleted."""

from __future__ import annotations

import pytest

from sprocket.base.errors import GroupNotFound, UsageError
from sprocket.client.push_consumer import PushConsumer
from sprocket.testing.cluster import Cluster
from tests.console.parts import Operating, operated


def test_a_group_from_its_making_to_its_end() -> None:
    async def test(do: Operating, cluster: Cluster) -> None:
        assert (await do("groups.list")).items == []
        assert len((await do("groups.list", internal=True)).items) >= 8
        await do("groups.create", group="billing", dry_run=True)
        with pytest.raises(GroupNotFound):
            await do("groups.describe", group="billing")
        await do("groups.create", group="billing", retry_max_times=3)
        (row,) = (await do("groups.list", status=True)).items
        assert (row.group, row.members, row.lag) == ("billing", 0, 0)
        shown = await do("groups.describe", group="billing")
        assert not shown.is_online
        assert {each["retry_max_times"] for each in shown.settings.values()} == {3}

        tried = await do("groups.change", group="billing", retry_max_times=5, dry_run=True)
        (change, _) = tried.changes
        assert (change.before["retry_max_times"], change.after["retry_max_times"]) == (3, 5)
        assert (await do("groups.describe", group="billing")) == shown
        await do("groups.change", group="billing", retry_max_times=5, broker="broker-1")
        shown = await do("groups.describe", group="billing")
        assert [each["retry_max_times"] for each in shown.settings.values()] == [3, 5]

        tried = await do("groups.delete", group="billing", dry_run=True)
        assert [each.broker for each in tried.changes] == ["broker-0", "broker-1"]
        await do("groups.delete", group="billing")
        assert (await do("groups.list")).items == []

    operated(test, brokers=2)


def test_what_a_group_cannot_be_asked_is_refused() -> None:
    async def test(do: Operating, cluster: Cluster) -> None:
        with pytest.raises(UsageError, match="name what is to change"):
            await do("groups.change", group="billing")
        with pytest.raises(UsageError, match="at most 100"):
            await do("groups.list", status=True, limit=101)
        with pytest.raises(GroupNotFound):
            await do("groups.lag", group="billing")

    operated(test)


def test_members_and_their_state_are_shown() -> None:
    async def test(do: Operating, cluster: Cluster) -> None:
        await do("topics.create", topic="orders", queues=2)
        _, world = cluster.client("app")
        consumer = PushConsumer("billing", nameservers=cluster.nameserver_addresses, world=world)
        consumer.on("orders")(lambda message: None)
        async with consumer:
            shown = await do("groups.describe", group="billing")
            (member,) = shown.members
            assert shown.is_online
            assert shown.subscriptions["orders"] == "*"
            state = await do("groups.running", group="billing", client=member.client_id)
            assert state.subscriptions["orders"] == "*"
            assert "orders@broker-0:0" in state.queues

    operated(test)
