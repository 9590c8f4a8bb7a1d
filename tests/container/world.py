"""Processes that a test starts, ends and refuses to start, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from sprocket.container.children import ChildFailed, ChildSpec


class PlayedChild:
    """A process that runs until the test, or its parent, ends it.

    Attributes:
        asked: whether it was asked to end in order.
        hangs: whether it ends only when it is killed.
    """

    def __init__(self, about: Mapping[str, str], *, hangs: bool = False) -> None:
        self.about = about
        self.asked = self.hangs = False
        self.hangs = hangs
        self._code: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    @property
    def is_running(self) -> bool:
        return not self._code.done()

    async def wait(self) -> int:
        return await asyncio.shield(self._code)

    def end(self, code: int) -> None:
        if not self._code.done():
            self._code.set_result(code)

    def terminate(self) -> None:
        self.asked = True
        if not self.hangs:
            self.end(0)

    def kill(self) -> None:
        self.end(-9)


class PlayedLauncher:
    """Starts them.

    Attributes:
        faults: why processes cannot start, by name.
        started: all that were started, by name, the last one last.
        starts: when a start was tried: the time in s, and the name.
    """

    def __init__(self, *, takes: float = 1.0, hangs: bool = False) -> None:
        self.faults: dict[str, str] = {}
        self.started: dict[str, list[PlayedChild]] = {}
        self.starts: list[tuple[float, str]] = []
        self._takes, self._hangs = takes, hangs

    async def launch(self, spec: ChildSpec) -> PlayedChild:
        self.starts.append((asyncio.get_running_loop().time(), spec.name))
        await asyncio.sleep(self._takes)
        if fault := self.faults.get(spec.name):
            raise ChildFailed(fault)
        child = PlayedChild({"address": f"127.0.0.1:{spec.name}"}, hangs=self._hangs)
        self.started.setdefault(spec.name, []).append(child)
        return child

    def now(self, name: str) -> PlayedChild:
        """The process that was started last."""
        return self.started[name][-1]

    def times(self, name: str) -> list[float]:
        """When its starts were tried, s after the first of all."""
        return [at - self.starts[0][0] for at, each in self.starts if each == name]


def specs(*names: str, rank: int = 0) -> list[ChildSpec]:
    return [ChildSpec(name, ("broker",), rank=rank) for name in names]
