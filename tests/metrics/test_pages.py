"""The pages that probes and Prometheus ask for, over real connections."""

from __future__ import annotations

import asyncio
import re
from typing import ClassVar

import aiohttp
import pytest

from sprocket.base.errors import ConfigError, UsageError
from sprocket.metrics.config import LOG, PROM, MetricsConfig
from sprocket.metrics.exporting import Exporting
from sprocket.metrics.health import Health, State
from sprocket.metrics.model import Family, Kind, Metric
from sprocket.metrics.names import BROKER, NAMESERVER, PROXY
from sprocket.standalone import Standalone

LINE = re.compile(r'[a-z_]+(\{([a-z_]+="(\\.|[^"\\\n])*",?)+\})? [-+.e\d]+')
HOSTILE = Metric("sprocket_hostile", Kind.GAUGE, "Names from \n outside.", ("name",))


class Hostile:
    """A source whose labels are hostile text."""

    labels: ClassVar = {"node_id": 'a"b\\c\nd'}

    async def families(self):  # type: ignore[no-untyped-def]
        yield Family(HOSTILE, {('evil"} 1\n# TYPE x counter',): 1.5})


async def page(address: str | None, path: str) -> tuple[int, str]:
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"http://{address}/{path}") as reply,
    ):
        return reply.status, await reply.text()


def test_prometheus_reads_what_is_served() -> None:
    async def main() -> None:
        config = MetricsConfig(exporter=PROM, port=0)
        async with Standalone(store=None, grpc_port=0, configs=[config]) as node:
            status, text = await page(node.pages, "metrics")
        assert status == 200
        known = {metric.name for metric in (*BROKER, *NAMESERVER, *PROXY)}
        seen = set()
        for line in text.splitlines():
            if line.startswith("# TYPE "):
                _, _, name, kind = line.split()
                assert name in known
                assert name not in seen
                seen.add(name)
                assert kind == ("counter" if name.endswith("_total") else "gauge")
            elif not line.startswith("#"):
                assert LINE.fullmatch(line), line
        assert {"rocketmq_topic_number", "rocketmq_proxy_up", "sprocket_nameserver_topics"} <= seen

    asyncio.run(main())


def test_hostile_names_stay_inside_their_labels() -> None:
    async def main() -> None:
        async with Exporting(MetricsConfig(exporter=PROM, port=0)) as exporting:
            exporting.add("hostile", Hostile(), lambda: Health(State.SERVING))
            _, text = await page(exporting.address, "metrics")
        *comments, line = text.splitlines()
        assert len(comments) == 2
        assert LINE.fullmatch(line)

    asyncio.run(main())


@pytest.mark.parametrize(
    ("state", "live", "ready"),
    [
        (State.STARTING, 200, 503),
        (State.SERVING, 200, 200),
        (State.READ_ONLY, 200, 200),
        (State.FULL, 200, 200),
        (State.NOT_IN_SYNC, 200, 503),
        (State.FAILED, 503, 503),
    ],
)
def test_probes_get_the_state_and_why(state: State, live: int, ready: int) -> None:
    async def main() -> None:
        async with Exporting(MetricsConfig(health=True, port=0)) as exporting:
            exporting.add("well", Hostile(), lambda: Health(State.SERVING))
            exporting.add("other", Hostile(), lambda: Health(state, "because"))
            assert (await page(exporting.address, "health/live"))[0] == live
            status, text = await page(exporting.address, "health/ready")
            assert status == ready
            assert f'"other": {{"state": "{state.value}", "why": "because"}}' in text
            assert (await page(exporting.address, "metrics"))[0] == 404

    asyncio.run(main())


def test_a_server_that_starts_is_not_ready() -> None:
    async def main() -> None:
        async with Exporting(MetricsConfig(health=True, port=0)) as exporting:
            assert (await page(exporting.address, "health/ready"))[0] == 503
            exporting.expect("broker")
            assert (await page(exporting.address, "health/live"))[0] == 200
            status, text = await page(exporting.address, "health/ready")
            assert (status, '"state": "starting"' in text) == (503, True)

    asyncio.run(main())


def test_a_port_in_use_is_refused_by_name() -> None:
    async def main() -> None:
        async with Exporting(MetricsConfig(health=True, port=0)) as first:
            assert first.address is not None
            port = int(first.address.rpartition(":")[2])
            with pytest.raises(UsageError, match=r"metrics\.port"):
                await Exporting(MetricsConfig(health=True, port=port)).__aenter__()

    asyncio.run(main())


@pytest.mark.parametrize("labels", ["zone", "zone:a,:b", "1zone:a", "cluster:mine", 'a"b:c'])
def test_labels_that_are_none_are_refused_by_name(labels: str) -> None:
    with pytest.raises(ConfigError, match="metricsLabel"):
        Exporting(MetricsConfig(exporter=LOG, labels=labels))
