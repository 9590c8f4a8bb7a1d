"""One page for the metrics and the health of all processes."""

from __future__ import annotations

from contextlib import AsyncExitStack

import pytest

from sprocket.container.children import ChildSpec
from sprocket.container.pages import ChildPages, ContainerMetrics
from sprocket.container.supervisor import Supervisor
from sprocket.metrics.config import PROM, MetricsConfig
from sprocket.metrics.exporting import Exporting
from sprocket.metrics.health import Health, State
from sprocket.metrics.model import Family
from sprocket.metrics.names import TOPICS
from tests.container.world import PlayedChild, PlayedLauncher, specs
from tests.metrics.test_pages import page
from tests.support import run

CONFIG = MetricsConfig(exporter=PROM, port=0)


class Topics:
    """A source with one metric."""

    def __init__(self, name: str) -> None:
        self.labels = {"node_id": name}

    async def families(self):  # type: ignore[no-untyped-def]
        yield Family.single(TOPICS, 7)


class ServingLauncher(PlayedLauncher):
    """Its processes serve pages, as real ones do; each is in the state that `states` names."""

    def __init__(self, opened: AsyncExitStack) -> None:
        super().__init__(takes=0)
        self._opened = opened
        self.states: dict[str, Health] = {}

    async def launch(self, spec: ChildSpec) -> PlayedChild:
        child = await super().launch(spec)
        exporting = await self._opened.enter_async_context(Exporting(CONFIG))
        health = self.states.get(spec.name, Health(State.SERVING))
        exporting.add("broker", Topics(spec.name), lambda: health)
        child.about = {"pages": exporting.address or ""}
        return child


def test_one_port_has_the_metrics_and_the_health_of_all() -> None:
    async def main() -> None:
        async with AsyncExitStack() as opened:
            launcher = ServingLauncher(opened)
            launcher.states["b"] = Health(State.READ_ONLY, "it is a slave")
            supervisor = Supervisor(launcher, stop_seconds=5)
            exporting = Exporting(CONFIG, ChildPages(supervisor))
            await opened.enter_async_context(exporting)
            opened.push_async_callback(supervisor.stop)
            source = ContainerMetrics(supervisor, "container", lambda: "here")
            exporting.add("container", source, lambda: Health(State.SERVING))
            await supervisor.start(specs("a", "b"))
            status, text = await page(exporting.address, "metrics")
            assert status == 200
            assert text.count("# TYPE rocketmq_topic_number gauge\n") == 1
            for name in ("a", "b"):
                assert f'rocketmq_topic_number{{node_id="{name}"}} 7\n' in text
                assert f'process="{name}"}} 1\n' in text
            status, text = await page(exporting.address, "health/ready")
            assert status == 200
            assert '"b": {"state": "read-only", "why": "it is a slave"}' in text

    run(main())


@pytest.mark.parametrize(
    ("health", "why"),
    [
        (Health(State.FAILED, "I/O error"), "it failed, and is started again: I/O error"),
        (Health(State.NOT_IN_SYNC, "no slave"), "no slave"),
        (None, "the port is taken"),
    ],
)
def test_one_that_does_not_work_is_named_and_no_reason_to_start_all_again(
    health: Health | None, why: str
) -> None:
    async def main() -> None:
        async with AsyncExitStack() as opened:
            launcher = ServingLauncher(opened)
            if health is None:
                launcher.faults["b"] = why
            else:
                launcher.states["b"] = health
            supervisor = Supervisor(launcher, stop_seconds=5)
            exporting = Exporting(CONFIG, ChildPages(supervisor))
            await opened.enter_async_context(exporting)
            opened.push_async_callback(supervisor.stop)
            await supervisor.start(specs("a", "b"))
            status, text = await page(exporting.address, "health/ready")
            assert (status, why in text) == (503, True)
            assert (await page(exporting.address, "health/live"))[0] == 200
            assert 'node_id="a"' in (await page(exporting.address, "metrics"))[1]

    run(main())
