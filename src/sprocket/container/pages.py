"""The metrics and the health of a parent's processes, for the one page of the parent.

Each process serves its own on the loopback interface, at a port that only its parent is told.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable, Mapping

from sprocket.container.supervisor import Supervisor
from sprocket.metrics import names
from sprocket.metrics.health import Health, State
from sprocket.metrics.model import Family

logger = logging.getLogger(__name__)

#: How long a process may take for its page, s.
_PAGE_SECONDS = 5.0


class ChildPages:
    """Reads the pages of the processes that run."""

    def __init__(self, supervisor: Supervisor) -> None:
        self._supervisor = supervisor

    async def metrics(self) -> list[str]:
        """The metrics of each process that answers."""
        pages = await asyncio.gather(*map(self._metrics_of, self._supervisor.running))
        return [page for page in pages if page is not None]

    async def states(self) -> dict[str, Health]:
        """The health of each process; of one that does not run, why.

        A process whose disk failed is started again by its parent, so none of these is a reason to
        start the parent again.
        """
        running = list(self._supervisor.running)
        states = await asyncio.gather(*map(self._state_of, running))
        found = dict(zip(running, states, strict=True))
        for name, reason in self._supervisor.troubles.items():
            found[name] = Health(State.STARTING, reason or "it has not begun to serve")
        return {name: found[name] for name in sorted(found)}

    async def _metrics_of(self, name: str) -> str | None:
        try:
            return await self._page(name, "metrics")
        except (OSError, TimeoutError) as error:
            logger.warning("%s does not tell its metrics: %s", name, error or "it takes too long")
            return None

    async def _state_of(self, name: str) -> Health:
        try:
            page = json.loads(await self._page(name, "health/ready"))
            [state] = page["servers"].values()
        except (OSError, TimeoutError, ValueError, KeyError) as error:
            return Health(State.STARTING, f"it does not tell its health: {error}")
        if state["state"] == State.FAILED.value:
            return Health(State.STARTING, f"it failed, and is started again: {state['why']}")
        return Health(State(state["state"]), state["why"])

    async def _page(self, name: str, path: str) -> str:
        """A page of a process.

        Raises:
            OSError, TimeoutError: it does not answer.
        """
        import aiohttp

        address = self._supervisor.running.get(name, {}).get("pages")
        if address is None:
            raise OSError("it serves no pages")
        try:
            async with (
                asyncio.timeout(_PAGE_SECONDS),
                aiohttp.ClientSession() as session,
                session.get(f"http://{address}/{path}") as reply,
            ):
                return await reply.text()
        except aiohttp.ClientError as error:
            raise OSError(str(error)) from error


class ContainerMetrics:
    """The metrics of the parent: which of its processes run.

    Args:
        kind, address: the labels of the parent.
    """

    def __init__(self, supervisor: Supervisor, kind: str, address: Callable[[], str]) -> None:
        self._supervisor = supervisor
        self._kind, self._address = kind, address

    @property
    def labels(self) -> Mapping[str, str]:
        """The labels of all values."""
        return {"node_type": self._kind, "node_id": self._address()}

    async def families(self) -> AsyncIterator[Family]:
        """The values now."""
        running = self._supervisor.running
        starts = self._supervisor.starts
        yield Family(names.PROCESS_UP, {(name,): float(name in running) for name in starts})
        yield Family(names.PROCESS_STARTS, {(name,): count for name, count in starts.items()})
