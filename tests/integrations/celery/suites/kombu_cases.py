"""The tests that kombu has for all its transports, with connections to the broker of this run.

`t.integration.common` is of kombu's source archive, which `python -m` of this folder unpacks.
"""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Iterator
from typing import Any

import kombu
import pytest
from t.integration.common import (
    BaseEventLoop,
    BaseExchangeTypes,
    BaseFailover,
    BaseMessage,
    BasePriority,
    BaseTimeToLive,
    BasicFunctionality,
)

NAMESERVERS = os.environ["SUITES_NAMESERVERS"]


def dead_address() -> str:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{free.getsockname()[1]}"


#: Some tests expect the messages of one sender in their order.
OPTIONS = {"queues_per_topic": 1}


@pytest.fixture
def connection() -> Iterator[Any]:
    url = f"sprocket+rocketmq://{NAMESERVERS}"
    with kombu.Connection(url, transport_options=OPTIONS) as connection:
        yield connection


@pytest.fixture
def invalid_connection() -> Iterator[Any]:
    with kombu.Connection(f"sprocket+rocketmq://{dead_address()}") as connection:
        yield connection


@pytest.fixture
def failover_connection() -> Iterator[Any]:
    urls = [f"sprocket://{dead_address()}", f"sprocket://{NAMESERVERS}"]
    with kombu.Connection(urls, connect_timeout=10) as connection:
        yield connection


class TestBasicFunctionality(BasicFunctionality):
    pass


class TestExchangeTypes(BaseExchangeTypes):
    pass


class TestTimeToLive(BaseTimeToLive):
    pass


class Draining(kombu.Connection):  # type: ignore[misc]
    """Its `drain_events` delivers all that comes within some seconds, as these tests expect."""

    def drain_events(self, **named: Any) -> None:
        with contextlib.suppress(TimeoutError):
            while True:
                super().drain_events(timeout=5)


class TestPriority(BasePriority):
    @pytest.fixture
    def connection(self) -> Iterator[Any]:
        with Draining(f"sprocket+rocketmq://{NAMESERVERS}") as connection:
            yield connection


class TestMessage(BaseMessage):
    pass


class TestEventLoop(BaseEventLoop):
    pass


class TestFailover(BaseFailover):
    pass
