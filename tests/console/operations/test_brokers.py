"""Brokers, their figures, their replicas and their limits are shown."""

from __future__ import annotations

import pytest

from sprocket.base.errors import UsageError
from sprocket.testing.cluster import Cluster
from tests.console.parts import Operating, operated


def test_brokers_are_shown_whether_they_answer_or_not() -> None:
    async def test(do: Operating, cluster: Cluster) -> None:
        page = await do("brokers.list", limit=1)
        assert ([each.broker for each in page.items], page.total) == (["broker-0"], 2)
        page = await do("brokers.list", after=page.next)
        assert [each.broker for each in page.items] == ["broker-1"]
        shown = await do("brokers.describe", broker="broker-1")
        assert "msgPutTotalTodayNow" in shown.processes[0].figures
        cluster.machines[-1].pause()
        page = await do("brokers.list")
        assert [each.is_reachable for each in page.items] == [True, False]
        cluster.machines[-1].wake()
        with pytest.raises(UsageError, match="no broker nobody"):
            await do("brokers.describe", broker="nobody")

    operated(test, brokers=2)


def test_replicas_and_limits_are_shown() -> None:
    async def test(do: Operating, cluster: Cluster) -> None:
        (group,) = (await do("brokers.replicas")).groups
        assert (group["broker"], group["members"][0]["role"]) == ("broker-0", "master")
        assert (await do("brokers.quotas")).counts == []

    operated(test)
