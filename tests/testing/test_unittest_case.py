"""A broker for tests of unittest."""

from __future__ import annotations

import os
import unittest

import pytest

from sprocket.client import blocking
from sprocket.client.producer import Producer
from sprocket.message.message import Message
from sprocket.testing.unittest_case import RocketMQTestCase
from sprocket.testing.virtual_time import VirtualTopics, virtual_time

pytestmark = pytest.mark.process


def cases() -> list[type[unittest.TestCase]]:
    """The classes under test; pytest would run them if they stood in the module."""

    class Blocking(RocketMQTestCase):
        def test_it_is_found_without_an_address(self) -> None:
            topic = self.rocketmq.topic("orders")
            with blocking.Producer("p") as producer:
                producer.send(Message(topic, b"one"))
            assert [m.body for m in self.rocketmq.messages(topic, 1)] == [b"one"]

        @virtual_time
        async def test_in_virtual_time(self, rocketmq: VirtualTopics) -> None:
            assert rocketmq.nameservers != self.rocketmq.nameservers

        def test_that_fails(self) -> None:
            self.rocketmq.messages(self.rocketmq.topic(), 1, wait_s=0)

    class Async(RocketMQTestCase, unittest.IsolatedAsyncioTestCase):
        async def test_it_is_awaited(self) -> None:
            topic = await self.rocketmq.aio.topic("orders")
            async with Producer("p") as producer:
                await producer.send(Message(topic, b"two"))
            (message,) = await self.rocketmq.aio.messages(topic, 1)
            assert message.body == b"two"

        @virtual_time(seed=3)
        async def test_in_virtual_time(self, rocketmq: VirtualTopics) -> None:
            assert rocketmq.nameservers != self.rocketmq.nameservers

    return [Blocking, Async]


@pytest.mark.parametrize(("number", "runs", "failures"), [(0, 3, 1), (1, 2, 0)])
def test_a_class_of_tests_has_a_broker(
    number: int, runs: int, failures: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SPROCKET_NAMESERVERS", raising=False)
    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(cases()[number]).run(result)
    assert result.errors == []
    assert result.testsRun == runs
    assert len(result.failures) == failures
    if failures:
        assert "0 of 1 messages" in result.failures[0][1]
    assert "SPROCKET_NAMESERVERS" not in os.environ
