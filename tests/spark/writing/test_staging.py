"""Rows that are staged and published, at a real broker; Spark itself is in `test_killing_sink`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from sprocket.base.errors import UsageError
from sprocket.client.blocking import PullConsumer
from sprocket.message.message import Message
from sprocket.protocol.requests.staged import Published
from sprocket.spark.options.write_options import WriteOptions, write_options
from sprocket.spark.writing import publishing, send, staging
from sprocket.spark.writing.failures import WriteFailed
from sprocket.spark.writing.publishing import publish
from sprocket.spark.writing.rows import OutgoingMessage
from sprocket.spark.writing.staged_part import StagedPart
from sprocket.spark.writing.staging import StagingSender
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
    given = {"namesrvAddr": node.names, "transactionBroker": BROKER, "sendRetries": "2", **more}
    return write_options(given)


def staged(
    node: Node, topic: str, bodies: list[bytes], *, attempt: str = "a", batch_id: int = 0,
    **more: str,
) -> StagedPart:  # fmt: skip
    with StagingSender(options(node, **more), StagedPart(topic, batch_id, attempt)) as sender:
        sender.send(OutgoingMessage(Message(topic, body), None, None) for body in bodies)
        sender.finish()
        assert sender.acknowledged == len(bodies)
        return sender.part


def published(node: Node, *parts: StagedPart, is_first: bool = True, **more: str) -> Published:
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
    assert part.requests == 11
    assert part.topic == "once"
    assert seen(node, "once") == {b"first": 1}
    assert published(node, part).messages == 1001
    again = staged(node, "once", bodies[:7], attempt="again")
    assert published(node, again, is_first=False).is_repeat
    assert seen(node, "once") == {b"first": 1, **dict.fromkeys(bodies, 1)}


def test_the_topic_is_made_unless_it_is_elsewhere(node: Node) -> None:
    part = staged(node, "made", [b"row"])
    assert published(node, part).messages == 1
    assert seen(node, "made") == {b"row": 1}
    with pytest.raises(WriteFailed, match="sprocket topic create made --broker elsewhere"):
        staged(node, "made", [b"row"], transactionBroker="elsewhere")


def test_a_transaction_without_rows_counts(node: Node) -> None:
    assert published(node, StagedPart("empty", 0, "a")).messages == 0
    assert published(node, StagedPart("empty", 1, "a"), is_first=False).messages == 0


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
