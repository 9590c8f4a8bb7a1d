"""Whatever keeps a client from its work is told at once, rarely after that, and when it is over."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable

import pytest

from sprocket.client.config import ConsumerConfig
from sprocket.client.push_consumer import PushConsumer
from sprocket.client.session.reachability import Reachability
from sprocket.message.message import StoredMessage
from sprocket.protocol.codes import ResponseCode as Code
from sprocket.protocol.command import Command, Header
from sprocket.protocol.requests.client import Heartbeat
from sprocket.protocol.requests.lock import LockQueues
from sprocket.protocol.requests.offset import UpdateOffset
from sprocket.protocol.requests.pull import PullMessage
from sprocket.protocol.requests.route import RouteOfTopic
from sprocket.protocol.requests.send import SendBack, SendMessageV2
from sprocket.remoting.transport import Peer
from tests.client.fakes import FakeBroker, play, world

HOUR = 3600.0


class Refusals:
    """Answers some requests with an error, until it is off."""

    def __init__(self, broker: FakeBroker, refused: dict[type[Header], Code]) -> None:
        self._codes = {header.code: int(code) for header, code in refused.items()}
        self.is_on = True
        broker.refuse = self

    def __call__(self, command: Command, peer: Peer) -> int | None:
        return self._codes.get(command.code) if self.is_on else None


def warnings(caplog: pytest.LogCaptureFixture, words: Iterable[str]) -> list[str]:
    texts = [each.getMessage() for each in caplog.records if each.levelno >= logging.WARNING]
    return [text for text in texts if all(word in text for word in words)]


@pytest.mark.parametrize(
    ("refused", "told", "ended"),
    [
        ({PullMessage: Code.NO_PERMISSION}, "cannot read topic orders", "can read topic orders"),
        (
            {PullMessage: Code.SUBSCRIPTION_GROUP_NOT_EXIST},
            "cannot read topic orders",
            "can read topic orders",
        ),
        ({PullMessage: Code.SYSTEM_ERROR}, "cannot read topic orders", "can read topic orders"),
        ({Heartbeat: Code.SYSTEM_ERROR}, "cannot register at broker", "can register at broker"),
        ({RouteOfTopic: Code.TOPIC_NOT_EXIST}, "cannot find topic orders", "can find topic orders"),
        (
            {RouteOfTopic: Code.SYSTEM_ERROR},
            "no answer from any name",
            "answers come again from any",
        ),
        (
            {UpdateOffset: Code.SUBSCRIPTION_GROUP_NOT_EXIST, PullMessage: Code.SYSTEM_ERROR},
            "cannot commit offsets of orders",
            "can commit offsets of orders",
        ),
        (
            {SendBack: Code.SYSTEM_ERROR, SendMessageV2: Code.NO_PERMISSION},
            "cannot send failed messages back",
            "can send failed messages back",
        ),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_a_consumer_says_what_keeps_it_from_its_work(
    refused: dict[type[Header], Code], told: str, ended: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    is_failing, has_failed_after = SendBack in refused, False

    async def listen(message: StoredMessage) -> None:
        nonlocal has_failed_after
        if is_failing and not has_failed_after:
            has_failed_after = not refusals.is_on
            raise ValueError("not now")

    async def main() -> None:
        nonlocal refusals
        async with FakeBroker({"orders": 2}) as broker:
            refusals = Refusals(broker, refused)
            if UpdateOffset in refused:  # a message is consumed first, and its offset is refused
                refusals._codes.pop(PullMessage.code)
            broker.put("orders")
            consumer = PushConsumer(
                "readers",
                nameservers=broker.address,
                world=world(),
                start="first",
                config=ConsumerConfig(hold_ms=20_000, route_refresh_ms=10_000),
            )
            consumer.subscribe("orders", listener=listen)
            async with consumer:
                await asyncio.sleep(15)
                if UpdateOffset in refused:
                    refusals._codes[PullMessage.code] = Code.SYSTEM_ERROR
                assert warnings(caplog, [told]), "it is told soon"
                await asyncio.sleep(HOUR)
                assert 3 <= len(warnings(caplog, [told])) <= 8, warnings(caplog, [told])
                refusals.is_on = False
                await asyncio.sleep(120)
                assert len(warnings(caplog, [ended])) == 1
                before = len(warnings(caplog, [told]))
                await asyncio.sleep(600)
                assert len(warnings(caplog, [told])) == before

    refusals: Refusals = None  # type: ignore[assignment]
    play(main)


@pytest.mark.parametrize("ordered", [False, True])
def test_a_message_that_brokers_refuse_for_good_is_given_up_with_an_error(
    ordered: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        times: list[int] = []

        async def listen(message: StoredMessage) -> None:
            if message.body == b"bad":
                times.append(message.reconsume_times)
                raise ValueError("never")

        async with FakeBroker({"orders": 1}) as broker:
            codes = {SendBack: Code.MESSAGE_ILLEGAL, SendMessageV2: Code.MESSAGE_ILLEGAL}
            Refusals(broker, codes)
            for body in ("bad", "good"):
                broker.put("orders", body=body)
            consumer = PushConsumer(
                "readers",
                nameservers=broker.address,
                world=world(),
                start="first",
                ordered=ordered,
                config=ConsumerConfig(reconsume_max=3),
            )
            consumer.subscribe("orders", listener=listen)
            async with consumer:
                await asyncio.sleep(120)
                assert times == [0, 1, 2, 3]
                assert len(warnings(caplog, ["group readers gives up message"])) == 1
                assert broker.committed["readers", "orders", 0] == 2, "the queue goes on"

    play(main)


def test_a_lease_that_is_never_granted_is_told(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async def listen(message: StoredMessage) -> None:
            pass

        async with FakeBroker({"orders": 1}) as broker:
            broker.leases["orders", 0] = ("a client that stays", 2 * HOUR)
            broker.leases["%RETRY%readers", 0] = ("a client that stays", 2 * HOUR)
            consumer = PushConsumer(
                "readers", nameservers=broker.address, world=world(), ordered=True
            )
            consumer.subscribe("orders", listener=listen)
            async with consumer:
                await asyncio.sleep(80)
                assert not warnings(caplog, ["cannot get the lease"]), "one that died loses it"
                await asyncio.sleep(300)
                assert 2 <= len(warnings(caplog, ["cannot get the lease on orders"])) <= 4
                assert broker.count(LockQueues) < 1_000, "two queues, about once a second"
                broker.leases.clear()
                await asyncio.sleep(60)
                assert len(warnings(caplog, ["can get the lease on orders"])) == 1

    play(main)


def test_what_a_broker_warns_of_is_told_by_the_client(caplog: pytest.LogCaptureFixture) -> None:
    now = [0.0]
    reachability = Reachability(lambda: now[0])
    for second in range(0, 3600, 30):
        now[0] = second
        reachability.registered("c", "b:1", Command(code=0, opaque=1, remark="members disagree"))
    assert 2 <= len(warnings(caplog, ["members disagree"])) <= 8
    reachability.registered("c", "b:1", Command(code=0, opaque=1))
    assert len(warnings(caplog, ["warns no more"])) == 1
