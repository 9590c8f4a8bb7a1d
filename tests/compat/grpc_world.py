"""Servers behind an endpoint of gRPC, ours and Java's, and what tests do there beside clients."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from sprocket import RouteNotFound
from sprocket.client import blocking
from tests.cli.parts import sprocket
from tests.compat.javaland import QUICK_TRANSACTIONS, JavaBroker, JavaNameServer, require_java
from tests.compat.javaproxy import JavaProxy
from tests.compat.sprocketland import SprocketNode, SprocketProxy

QUEUES = 2

#: A node of ours where nothing takes long.
_QUICK_SPROCKET = {
    "broker.transaction_check_ms": 1_000,
    "broker.transaction_timeout_ms": 1_000,
    "store.delay_levels": "1s " * 18,
}
_QUICK_JAVA = {
    **QUICK_TRANSACTIONS,
    "recallMessageEnable": True,
    "messageDelayLevel": "1s " * 17 + "1s",
}


@dataclass
class World:
    """Running servers: where clients connect, and where name servers answer."""

    endpoint: str
    names: str

    def make_topic(self, name: str, kind: str) -> None:
        """Make a topic of a message type."""
        self._cli("topic", "create", name, "--queues", str(QUEUES), "--message-type", kind)

    def make_group(self, name: str, *, is_ordered: bool = False, tries_max: int = 16) -> None:
        """Make a group, or change it."""
        order = "--ordered" if is_ordered else "--unordered"
        self._cli("group", "create", name, order, "--retries", str(tries_max))

    def dead(self, group: str) -> list[str]:
        """The bodies of a group's dead letters."""
        topic = f"%DLQ%{group}"
        try:
            with blocking.PullConsumer("looker", nameservers=self.names) as reader:
                queues = reader.queues(topic)
                return [
                    message.body.decode()
                    for queue in queues
                    for message in reader.pull(queue, 0).messages
                ]
        except RouteNotFound:
            return []

    def _cli(self, *words: str) -> None:
        done = sprocket(*words, "--nameserver", self.names)
        assert done.code == 0, done.err


@dataclass(frozen=True)
class Kind:
    """A way to put servers together."""

    name: str
    open: Callable[[Path], AbstractContextManager[World]]


@contextlib.contextmanager
def _ours(work: Path) -> Iterator[World]:
    with SprocketNode(work, settings=_QUICK_SPROCKET, grpc=True) as node:
        yield World(node.endpoint, node.names)


@contextlib.contextmanager
def _ours_before_java(work: Path) -> Iterator[World]:
    require_java()
    with (
        JavaNameServer(work) as names,
        JavaBroker(work, names.address, settings=_QUICK_JAVA),
        SprocketProxy(work, names.address) as proxy,
    ):
        yield World(proxy.endpoint, names.address)


@contextlib.contextmanager
def _java_before_ours(work: Path) -> Iterator[World]:
    require_java()
    with (
        SprocketNode(work, settings=_QUICK_SPROCKET) as node,
        JavaProxy.cluster(work, node.names) as proxy,
    ):
        yield World(proxy.endpoint, node.names)


@contextlib.contextmanager
def _java_alone(work: Path) -> Iterator[World]:
    require_java()
    with (
        JavaNameServer(work) as names,
        JavaProxy.local(work, names.address, broker_settings=_QUICK_JAVA) as proxy,
    ):
        yield World(proxy.endpoint, names.address)


OURS = Kind("ours", _ours)
WORLDS = [
    OURS,
    Kind("ours before Java's broker", _ours_before_java),
    Kind("Java's proxy before ours", _java_before_ours),
    Kind("Java alone", _java_alone),
]
