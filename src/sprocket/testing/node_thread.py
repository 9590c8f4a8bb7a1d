"""A real name server and broker on an event loop in a thread of its own, for tests.

Tests that block, and tests with an event loop of their own, use it alike: no call of theirs runs on
its loop, so nothing that a test does makes the broker wait.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Iterable
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Self, TypeVar

from sprocket.base.errors import UsageError
from sprocket.client.sending.sender import Sent
from sprocket.message.message import StoredMessage
from sprocket.standalone import Config, Standalone
from sprocket.store.config import StoreConfig
from sprocket.testing.isolated_topics import WAIT_SECONDS, IsolatedTopics

T = TypeVar("T")

_END_SECONDS = 120.0

#: Small files: a test needs little of them, and a thousand topics then take little of the disk.
TEST_STORE = StoreConfig(log_file_bytes=64 * 1024 * 1024, queue_file_bytes=5_000 * 20)


class NodeThread:
    """Use it with `with`. Inside, a broker runs, and its methods send to it and read from it.

    Each method waits for the one of the same name of `IsolatedTopics`, which describes it.

    Args:
        configs: settings of the parts, as for `Standalone`; a port should be 0, for a free one.

    Attributes:
        aio: the same methods for code on an event loop, to be awaited.
    """

    def __init__(self, configs: Iterable[Config] = ()) -> None:
        found = tuple(configs)
        has_store = any(isinstance(each, StoreConfig) for each in found)
        self._configs = found if has_store else (*found, TEST_STORE)
        self._loop = asyncio.new_event_loop()
        self._thread: threading.Thread | None = None
        self._ending: asyncio.Event | None = None
        self._topics: IsolatedTopics | None = None
        self._ended: Future[None] = Future()
        self.aio = AwaitedNode(self)

    def __enter__(self) -> Self:
        """Starts the broker, in about half a second.

        Raises:
            UsageError, ConfigError, StoreError: as `Standalone`.
        """
        if self._thread is not None:
            raise UsageError("a node starts once")
        ready: Future[IsolatedTopics] = Future()
        self._thread = threading.Thread(
            target=self._run, args=(ready,), name="sprocket-test-node", daemon=True
        )
        self._thread.start()
        try:
            self._topics = ready.result()
        except Exception:  # of the start, whatever it was: the thread ends with it
            self._thread.join()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stops the broker and removes its folder.

        Raises:
            TimeoutError: it does not stop within two minutes; its thread then ends with Python.
        """
        assert self._thread is not None
        assert self._ending is not None
        self._topics = None
        self._loop.call_soon_threadsafe(self._ending.set)
        self._ended.result(_END_SECONDS)
        self._thread.join(_END_SECONDS)

    def _run(self, ready: Future[IsolatedTopics]) -> None:
        try:
            with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
                runner.run(self._serve(ready))
            self._ended.set_result(None)
        except BaseException as error:  # the root of a thread: the error is for the one who waits
            (self._ended if ready.done() else ready).set_exception(error)

    async def _serve(self, ready: Future[IsolatedTopics]) -> None:
        self._ending = asyncio.Event()
        async with (
            Standalone(configs=self._configs) as node,
            IsolatedTopics(node.nameserver_address) as topics,
        ):
            ready.set_result(topics)
            await self._ending.wait()

    def begin(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Starts a coroutine on the broker's loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    @property
    def topics(self) -> IsolatedTopics:
        """What the methods of this class and of `aio` call, on the broker's loop.

        Raises:
            UsageError: the broker does not run.
        """
        if self._topics is None:
            raise UsageError("the test's broker does not run")
        return self._topics

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        future = self.begin(work)
        try:
            return future.result()
        except BaseException:  # also Ctrl-C: nobody waits for the result any more
            future.cancel()
            raise

    @property
    def nameservers(self) -> str:
        """`host:port` of the name server, for clients."""
        return self.topics.nameservers

    def group(self, name: str = "group") -> str:
        """Returns the name of a consumer group that no other test has."""
        return self.topics.group(name)

    def topic(self, name: str = "topic", *, queues: int = 1, type: str | None = None) -> str:
        """Creates a topic that no other test has, and returns its name."""
        return self._wait(self.topics.topic(name, queues=queues, type=type))

    def send(self, topic: str, body: bytes | str, **fields: Any) -> Sent:
        """Sends a message, with `fields` of `Message`."""
        return self._wait(self.topics.send(topic, body, **fields))

    def messages(
        self, topic: str, count: int | None = None, *, wait_s: float = WAIT_SECONDS
    ) -> list[StoredMessage]:
        """Returns all messages of a topic; with `count`, waits until there are as many."""
        return self._wait(self.topics.messages(topic, count, wait_s=wait_s))


class AwaitedNode:
    """The methods of a `NodeThread` for code on an event loop of its own."""

    def __init__(self, node: NodeThread) -> None:
        self._node = node

    async def topic(self, name: str = "topic", *, queues: int = 1, type: str | None = None) -> str:
        """Creates a topic that no other test has, and returns its name."""
        return await self._on_its_loop(self._node.topics.topic(name, queues=queues, type=type))

    async def send(self, topic: str, body: bytes | str, **fields: Any) -> Sent:
        """Sends a message, with `fields` of `Message`."""
        return await self._on_its_loop(self._node.topics.send(topic, body, **fields))

    async def messages(
        self, topic: str, count: int | None = None, *, wait_s: float = WAIT_SECONDS
    ) -> list[StoredMessage]:
        """Returns all messages of a topic; with `count`, waits until there are as many."""
        return await self._on_its_loop(self._node.topics.messages(topic, count, wait_s=wait_s))

    async def _on_its_loop(self, work: Coroutine[Any, Any, T]) -> T:
        return await asyncio.wrap_future(self._node.begin(work))
