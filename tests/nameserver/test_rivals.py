"""Two brokers of one name are told; one that moves is not."""

from __future__ import annotations

import logging

import pytest

from sprocket.nameserver.instances import BrokerInfo
from sprocket.nameserver.rivals import Rivals
from sprocket.nameserver.routes import RouteTable

PAUSE_MS = 30_000


class Registry:
    """A table of routes with the check before it."""

    def __init__(self) -> None:
        self.now_ms = 0
        self.routes = RouteTable()
        self.rivals = Rivals(lambda: self.now_ms)

    def register(self, address: str, number: int = 0, name: str = "broker-a") -> str | None:
        info = BrokerInfo("c", name, number, address)
        warning = self.rivals.warning(info, self.routes.broker(name))
        self.routes.register(info, address, self.now_ms)
        return warning


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [each.getMessage() for each in caplog.records if each.levelno >= logging.WARNING]


def test_two_brokers_of_one_name_are_told_once_then_rarely_and_when_it_is_over(
    caplog: pytest.LogCaptureFixture,
) -> None:
    registry = Registry()
    assert registry.register("a:1") is None
    assert registry.register("b:1") is None, "it may have moved"
    for _ in range(120):  # an hour
        registry.now_ms += PAUSE_MS
        for address in ("a:1", "b:1", "b:1"):
            assert "at a:1 and b:1" in (registry.register(address) or "")
    assert 2 <= len(told(caplog)) <= 8
    assert "two brokers register as broker 'broker-a' with brokerId 0" in told(caplog)[0]
    before = len(told(caplog))
    for _ in range(10):
        registry.now_ms += PAUSE_MS
        last = registry.register("b:1")
    assert last is None
    assert len(told(caplog)) - before <= 2
    assert "is registered from one address again" in told(caplog)[-1]


def test_a_broker_that_moves_and_a_slave_are_not_told(caplog: pytest.LogCaptureFixture) -> None:
    registry = Registry()
    for number, address in enumerate(["a:1", "b:1", "c:1", "d:1"]):
        assert registry.register(address) is None
        assert registry.register(f"s{number}:1", number=1) is None
        registry.now_ms += PAUSE_MS
        assert registry.register(address) is None
    registry.now_ms += 10 * PAUSE_MS
    assert registry.register("a:1") is None, "back after a while"
    assert not told(caplog)
