"""Rows that are staged and published, at a real broker; Spark itself is in `test_killing_sink`."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator

import pytest

from sprocket.base.errors import ConnectionLost, UsageError
from sprocket.broker.broker import Broker
from sprocket.broker.config import BrokerConfig
from sprocket.client.blocking import PullConsumer
from sprocket.message.message import Message
from sprocket.protocol.bodies.staged import AttemptList, AttemptsElsewhere
from sprocket.protocol.command import Command
from sprocket.runtime.clock import SystemClock
from sprocket.runtime.disk import SystemDisk
from sprocket.runtime.entropy import SystemEntropy
from sprocket.spark.brokers.connection import BlockingConnection
from sprocket.spark.options.write_options import WriteOptions, write_options
from sprocket.spark.writing import publishing, send, staging
from sprocket.spark.writing.failures import WriteFailed
from sprocket.spark.writing.publishing import publish
from sprocket.spark.writing.rows import OutgoingMessage
from sprocket.spark.writing.staged_part import StagedPart
from sprocket.spark.writing.staging import StagingSender
from sprocket.store.config import StoreConfig
from tests.spark.node import Node

BROKER = "broker-a"


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    with Node(tmp_path_factory.mktemp("staging") / "store") as node:
        yield node


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (send, publishing):
        monkeypatch.setattr(module, "_PAUSE_FIRST_S", 0.001)
        monkeypatch.setattr(module, "_PAUSE_LONGEST_S", 0.01)


def options(node: Node, **more: str) -> WriteOptions:
    given = {"namesrvAddr": node.names, "transactionBrokers": BROKER, "sendRetries": "2", **more}
    return write_options(given)


def staged(
    node: Node, topic: str, bodies: list[bytes], *, attempt: str = "a", batch_id: int = 0,
    writer: str = "", **more: str,
) -> StagedPart:  # fmt: skip
    part = StagedPart(writer or topic, batch_id, attempt)
    with StagingSender(options(node, **more), part) as sender:
        sender.send(OutgoingMessage(Message(topic, body), None, None) for body in bodies)
        sender.finish()
        assert sender.acknowledged == len(bodies)
        return sender.part


def published(node: Node, *parts: StagedPart, is_first: bool = True, **more: str) -> bool:
    return publish(options(node, **more), parts, is_first=is_first, keep_seconds=3600, waits=True)


def seen(node: Node, topic: str) -> Counter[bytes]:
    found: Counter[bytes] = Counter()
    with PullConsumer("reader", nameservers=node.names) as consumer:
        for queue in consumer.queues(topic):
            at, end = 0, consumer.max_offset(queue)
            while at < end:
                pulled = consumer.pull(queue, at)
                found.update(bytes(message.body) for message in pulled.messages)
                at = pulled.next_offset
    return found


def test_rows_are_seen_once_when_their_transaction_is_published(node: Node) -> None:
    node.send("once", [b"first"])
    bodies = [b"row %d" % n for n in range(1000)] + [b"large" * 2000]
    part = staged(node, "once", bodies, batchMaxRecords="100")
    staged(node, "once", bodies, attempt="speculative")
    assert part.requests == {BROKER: 11}
    assert part.topics == {BROKER: "once"}
    assert seen(node, "once") == {b"first": 1}
    assert not published(node, part)
    again = staged(node, "once", bodies[:7], attempt="again")
    assert published(node, again, is_first=False)
    assert seen(node, "once") == {b"first": 1, **dict.fromkeys(bodies, 1)}


def test_the_topic_is_made_unless_it_is_elsewhere(node: Node) -> None:
    part = staged(node, "made", [b"row"])
    assert not published(node, part)
    assert seen(node, "made") == {b"row": 1}
    with pytest.raises(WriteFailed, match="sprocket topic create made --broker elsewhere"):
        staged(node, "made", [b"row"], transactionBrokers="elsewhere")


def test_a_transaction_without_rows_counts(node: Node) -> None:
    assert not published(node, StagedPart("empty", 0, "a"))
    assert not published(node, StagedPart("empty", 1, "a"), is_first=False)
    assert published(node, StagedPart("empty", 1, "a"), is_first=False)


def test_a_stream_that_the_broker_does_not_know_fails_and_says_what_helps(node: Node) -> None:
    with pytest.raises(WriteFailed, match="option transactionBegin"):
        published(node, StagedPart("unknown", 7, "a"), is_first=False)


def test_what_cannot_be_staged_is_refused(node: Node) -> None:
    node.send("refused", [b"first"])
    late = OutgoingMessage(Message("refused", b"late", delay_level=3), None, None)
    sender = StagingSender(options(node), StagedPart("refused", 0, "a"))
    with sender, pytest.raises(UsageError, match="no row can have a delay"):
        sender.send([late])


def test_a_broker_that_knows_no_staging_is_named(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As RocketMQ's own answer a code that they do not have."""
    node.send("java", [b"first"])
    monkeypatch.setattr(staging.StageBatch, "code", 30_999)
    with pytest.raises(WriteFailed, match="broker broker-a stages no rows, as RocketMQ's own"):
        staged(node, "java", [b"row"])


@pytest.fixture(scope="module")
def both(node: Node, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Two brokers; gives the option that names them."""
    config = BrokerConfig(name="broker-b", host="127.0.0.1", port=0, nameservers=(node.names,))
    broker = Broker(
        config, store=StoreConfig(), root=str(tmp_path_factory.mktemp("second")),
        disk=SystemDisk(), clock=SystemClock(), entropy=SystemEntropy(),
    )  # fmt: skip
    with node.beside(broker):
        yield f"{BROKER},broker-b"


def test_rows_of_several_brokers_come_from_one_attempt(
    node: Node, both: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver dies when the first broker has decided, and the next one makes other rows."""
    first = [b"first %d" % n for n in range(400)]
    again = [b"again %d" % n for n in range(400)]
    named = {"transactionBrokers": both, "batchMaxRecords": "40"}
    part = staged(node, "both", first, **named)
    assert sorted(part.requests) == [BROKER, "broker-b"]
    assert sum(part.requests.values()) == 10
    assert not seen(node, "both")
    with monkeypatch.context() as patch:
        patch.setattr(publishing, "_Publisher", Dying)
        with pytest.raises(KeyboardInterrupt):
            published(node, part, **named)
    assert 0 < len(seen(node, "both")) < 400
    assert published(node, staged(node, "both", again, attempt="b", **named), **named)
    assert seen(node, "both") == dict.fromkeys(first, 1)
    assert not published(node, staged(node, "both", again, batch_id=1, **named), **named)
    assert seen(node, "both") == dict.fromkeys(first + again, 1)


def test_the_broker_that_decides_need_not_have_the_topic(node: Node, both: str) -> None:
    assert not published(node, staged(node, "aside", [b"1"]))
    named = {"transactionBrokers": f"broker-b,{BROKER}"}
    part = staged(node, "aside", [b"2"], writer="other", **named)
    assert part.requests == {BROKER: 1}
    assert not published(node, part, topic="aside", **named)
    assert seen(node, "aside") == {b"1": 1, b"2": 1}


def test_a_request_is_repeated_where_it_may_be_staged(
    node: Node, both: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its reply is lost; at the other broker it would be staged a second time."""
    replies, received = itertools.count(), BlockingConnection.receive

    def receive(self: BlockingConnection, opaque: int, **named: float) -> Command:
        reply = received(self, opaque, **named)
        if next(replies) in (3, 7):
            raise ConnectionLost("the reply is lost")
        return reply

    bodies = [b"row %d" % n for n in range(400)]
    named = {"transactionBrokers": both, "batchMaxRecords": "20", "sendRetries": "9"}
    with monkeypatch.context() as patch:
        patch.setattr(BlockingConnection, "receive", receive)
        part = staged(node, "again", bodies, **named)
    assert sum(part.requests.values()) == 20
    published(node, part, **named)
    assert seen(node, "again") == dict.fromkeys(bodies, 1)


def test_the_broker_that_decides_stays_the_first(node: Node, both: str) -> None:
    named = {"transactionBrokers": both, "batchMaxRecords": "1"}
    bodies = [b"%d" % n for n in range(16)]  # so each broker gets some
    published(node, staged(node, "order", bodies, **named), **named)
    named["transactionBrokers"] = f"broker-b,{BROKER}"
    part = staged(node, "order", bodies, batch_id=1, **named)
    with pytest.raises(WriteFailed, match="was decided by broker-a, which must decide"):
        published(node, part, is_first=False, **named)


class Dying(publishing._Publisher):
    """Dies when the first broker has decided, and has published."""

    def _follow(self, first: str, one: AttemptsElsewhere, **named: bool) -> None:
        if not named:
            super()._ask(first, AttemptList(), waits=True)
            raise KeyboardInterrupt
        super()._follow(first, one, **named)
