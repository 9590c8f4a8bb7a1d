"""A real broker of ours for tests that block: in a loop of its own, in a thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, contextmanager
from pathlib import Path
from typing import Self

from sprocket.broker.config import BrokerConfig
from sprocket.client.blocking import Producer
from sprocket.message.message import Message
from sprocket.standalone import Standalone
from sprocket.store.config import StoreConfig
from tests.compat.javaland import free_broker_port, free_port

LONGEST_S = 240


class Node:
    """Name server and broker; `stop` and `start` again at the same ports, with the same store.

    Attributes:
        store: its folder.
        names: the name server's address.
    """

    def __init__(self, store: Path, *, config: BrokerConfig | None = None) -> None:
        self.store = store
        self._config = config
        # Not of those that the system gives away: they must be free when it starts again.
        self._ports = (free_port(), free_broker_port() if config is None else 0)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._node: Standalone | None = None
        self.names = ""

    def __enter__(self) -> Self:
        self._thread.start()
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def start(self) -> None:
        """Starts it; returns when it can be used."""
        nameserver_port, broker_port = self._ports
        broker = self._config or BrokerConfig(host="127.0.0.1", port=broker_port)
        self._node = Standalone(
            store=self.store,
            nameserver_port=nameserver_port,
            configs=[broker, StoreConfig(log_file_bytes=1 << 23)],
        )
        self._run(self._node.__aenter__())
        self.names = self._node.nameserver_address
        ports = (self.names, self._node.broker_address)
        self._ports = (int(ports[0].rpartition(":")[2]), int(ports[1].rpartition(":")[2]))

    def stop(self) -> None:
        """Stops it in order; its store stays."""
        if self._node is not None:
            self._run(self._node.__aexit__(None, None, None))
            self._node = None

    @contextmanager
    def beside(self, server: AbstractAsyncContextManager[object]) -> Iterator[None]:
        """Runs another server in the same loop."""
        self._run(server.__aenter__())
        try:
            yield
        finally:
            self._run(server.__aexit__(None, None, None))

    def send(self, topic: str, bodies: Iterable[bytes], *, tags: Sequence[str] = ("",)) -> None:
        """Sends a message for each body, with one tag after the other."""
        messages = [
            Message(topic, body, tag=tags[n % len(tags)] or None, keys=[f"k{n}"])
            for n, body in enumerate(bodies)
        ]
        with Producer("p", nameservers=self.names) as producer:
            for first in range(0, len(messages), 100):
                producer.send_batch(messages[first : first + 100])

    def _run(self, made: object) -> None:
        future: Future[None] = asyncio.run_coroutine_threadsafe(made, self._loop)  # type: ignore[arg-type]
        future.result(LONGEST_S)
