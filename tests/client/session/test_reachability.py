from __future__ import annotations

import asyncio
import logging

import pytest

from sprocket.base.errors import ConnectFailed, NoPermission, SprocketError
from sprocket.client.producer import Producer
from sprocket.client.push_consumer import PushConsumer
from sprocket.client.session.reachability import Reachability
from sprocket.message.message import Message, StoredMessage
from tests.client.fakes import FakeBroker, play, queue_of, until, world


def reports(caplog: pytest.LogCaptureFixture, level: int = logging.WARNING) -> list[str]:
    return [each.getMessage() for each in caplog.records if each.levelno >= level]


def test_an_outage_is_reported_at_its_begin_then_rarely_and_at_its_end(
    caplog: pytest.LogCaptureFixture,
) -> None:
    now = [0.0]
    reachability = Reachability(lambda: now[0])
    for second in range(4 * 3600):
        now[0] = float(second)
        reachability.failed("broker a", ConnectFailed("refused"))
    reachability.answered("broker a")
    reachability.answered("broker a")
    reachability.answered("broker b")
    told = reports(caplog)
    assert told[0] == "no answer from broker a: refused"
    assert told[1] == "no answer from broker a for 60 s: refused"
    assert told[-1] == "answers come again from broker a, after 14399 s"
    assert len(told) < 12


def test_clients_that_reach_nothing_report_it_once_and_when_it_is_over(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)

    async def main() -> None:
        async def take(message: StoredMessage) -> None:
            pass

        broker, there = FakeBroker({"orders": 1}), world()
        async with broker:
            address = broker.address
        consumer = PushConsumer("readers", nameservers=address, world=there)
        consumer.subscribe("orders", listener=take)
        producer = Producer("p", nameservers=address, world=there)
        async with consumer, producer:
            failed = 0
            until_time = asyncio.get_running_loop().time() + 40
            while asyncio.get_running_loop().time() < until_time:
                try:
                    await producer.send(Message("orders", b"x"))
                except SprocketError:
                    failed += 1
                await asyncio.sleep(0.01)
            assert failed > 100
            assert sum("no answer" in each for each in reports(caplog)) == 1
            assert len(reports(caplog, logging.INFO)) < 20
            async with broker:
                await until(lambda: queue_of("orders") in consumer.queues)
                await producer.send(Message("orders", b"x"))
                told = [each for each in reports(caplog) if "answers come again" in each]
                assert len(told) == 1, reports(caplog)

    play(main)


def test_pauses_are_longer_while_access_control_refuses_something() -> None:
    reachability = Reachability(lambda: 0.0)
    refused = NoPermission("User:a has no permission to access Topic:t from 10.0.0.1")
    assert (reachability.refusal, reachability.pause(3.0)) == (None, 3.0)
    reachability.refused("group g", "read topic t", refused)
    reachability.refused("group g", "read topic u", ConnectFailed("away"))
    assert (reachability.refusal, reachability.pause(3.0)) == (refused, 30.0)
    reachability.refused("group g", "read topic t", ConnectFailed("away"))
    assert reachability.refusal is None
    reachability.refused("group g", "read topic t", refused)
    reachability.succeeded("group g", "read topic t")
    assert (reachability.refusal, reachability.pause(3.0)) == (None, 3.0)
