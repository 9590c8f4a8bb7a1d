"""Servers behind an endpoint of gRPC, ours and Java's, and what tests do there beside clients."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from sprocket import RouteNotFound
from sprocket.admin import groups as admin_groups
from sprocket.admin import topic_changes
from sprocket.admin.caller import Caller
from sprocket.admin.groups import GroupSettings
from sprocket.admin.topic_changes import TopicSettings
from sprocket.client import blocking
from sprocket.message.topic_attributes import MESSAGE_TYPE
from sprocket.remoting.pool import Pool
from tests.compat.javaland import QUICK_TRANSACTIONS, JavaNameServer, require_java
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
    """Running servers: where clients connect, where name servers answer, and whether they have
    lite topics, which came with RocketMQ 5.5."""

    endpoint: str
    names: str
    has_lite: bool = False

    def make(self, topics: Mapping[str, str], groups: Mapping[str, GroupSettings]) -> None:
        """Make topics, each of a message type, and groups."""

        async def main() -> None:
            async with Pool() as pool:
                caller = Caller(pool, [self.names], timeout_ms=60_000)
                for topic, kind in topics.items():
                    attributes = {MESSAGE_TYPE: kind}
                    wanted = TopicSettings(QUEUES, QUEUES, attributes=attributes)
                    await topic_changes.create(caller, topic, wanted=wanted)
                for group, settings in groups.items():
                    await admin_groups.create(caller, group, wanted=settings)

        asyncio.run(main())

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


@dataclass(frozen=True)
class Kind:
    """A way to put servers together."""

    name: str
    open: Callable[[Path], AbstractContextManager[World]]


@contextlib.contextmanager
def _ours(work: Path) -> Iterator[World]:
    with SprocketNode(work, settings=_QUICK_SPROCKET, grpc=True) as node:
        yield World(node.endpoint, node.names, has_lite=True)


@contextlib.contextmanager
def _ours_apart(work: Path) -> Iterator[World]:
    with (
        SprocketNode(work, settings=_QUICK_SPROCKET) as node,
        SprocketProxy(work, node.names) as proxy,
    ):
        yield World(proxy.endpoint, node.names)


@contextlib.contextmanager
def _ours_before_java(work: Path) -> Iterator[World]:
    require_java()
    with (
        JavaNameServer(work) as names,
        # The broker is that of a proxy in local mode, whose own endpoint is not used.
        JavaProxy.local(work, names.address, broker_settings=_QUICK_JAVA),
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
    Kind("our proxy before our broker", _ours_apart),
    Kind("ours before Java's broker", _ours_before_java),
    Kind("Java's proxy before ours", _java_before_ours),
    Kind("Java alone", _java_alone),
]
