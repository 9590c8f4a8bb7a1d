"""A store that moves between our node and Java's broker: both as its hosts, and their visitor."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import product
from pathlib import Path

import pytest

from tests.compat.javaland import JavaBroker, JavaDriver, JavaNameServer, Json
from tests.compat.sprocketland import SprocketNode

Settings = Mapping[str, object]
#: By who begins ("ours" or "java") and how each part ends ("stop" or "kill").
Stories = Mapping[tuple[str, str], Future[None]]


@contextmanager
def stories_under_way(
    session: pytest.Session,
    folders: pytest.TempPathFactory,
    tell: Callable[[Path, str, str], None],
) -> Iterator[Stories]:
    """The stories that are wanted, all told at the same time: they mostly wait.

    Args:
        tell: one story, in a folder of its own: who begins, and how each part ends.
    """
    with ThreadPoolExecutor(4) as threads:
        yield {
            story: threads.submit(tell, folders.mktemp("-".join(story)), *story)
            for story in product(("ours", "java"), ("stop", "kill"))
            if any("-".join(story) in item.name for item in session.items)
        }


class Ours:
    """Our node on a store."""

    def __init__(self, work: Path, store: Path, port: int, settings: Settings) -> None:
        self._node = SprocketNode(work, store=store, settings=settings)
        self._node.port = port

    @property
    def names(self) -> str:
        return self._node.names

    def start(self) -> None:
        self._node.start()

    def stop(self) -> None:
        self._node.stop()

    def kill(self) -> None:
        self._node.kill()

    def close(self) -> None:
        self._node.kill()


class Javas:
    """Java's broker on a store, with a name server of its own."""

    def __init__(self, work: Path, store: Path, port: int, settings: Settings) -> None:
        self._names = JavaNameServer(work)
        settings = {"popConsumerFSServiceInit": False, **settings}
        self._broker = JavaBroker(
            work, self._names.address, store=store, port=port, settings=settings
        )

    @property
    def names(self) -> str:
        return self._names.address

    def start(self) -> None:
        if not self._names.is_running:
            self._names.start()
        self._broker.start()

    def stop(self) -> None:
        self._broker.stop()

    def kill(self) -> None:
        self._broker.kill()

    def close(self) -> None:
        self._broker.kill()
        self._names.kill()


class Visitor:
    """Java clients that write during one part of a story, and look at what is there."""

    def __init__(self, driver: JavaDriver, names: str, part: int) -> None:
        self._driver = driver
        self.part = part
        self._name = f"part{part}-at-{names.rpartition(':')[2]}"
        more = {"namesrv": names, "instance": self._name, "name": self._name}
        driver.call("producer.start", group="p", **more)
        driver.call("pull.start", **{**more, "group": "reader", "name": f"{self._name}-pull"})

    def leave(self) -> None:
        """Stops the clients, so that those of the next part have connections of their own."""
        self._driver.call("producer.stop", name=self._name)
        self._driver.call("pull.stop", name=f"{self._name}-pull")

    def wait_queued(self, topic: str, queue: int, end: int) -> None:
        """Waits until a queue ends there: Java's broker acknowledges before its queues show it."""
        self._driver.wait_queued(topic, queue, end, client=self._name)

    def call(self, command: str, **args: object) -> Json:
        name = self._name if command.startswith("producer.") else f"{self._name}-pull"
        client = {"client": self._name} if command.startswith("query.") else {}
        return self._driver.call(command, **{"name": name, **client, **args})
