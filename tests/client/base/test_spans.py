"""Spans of clients, as OpenTelemetry's exporter gets them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

pytest.importorskip("opentelemetry.sdk", reason="it is in the extra otlp")

from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from sprocket.base.errors import SprocketError, UsageError
from sprocket.client import blocking
from sprocket.client.base.spans import spans_of
from sprocket.client.base.subscription import Later, Outcome
from sprocket.client.config import ConsumerConfig, LitePullConfig, ProducerConfig
from sprocket.client.lite_pull_consumer import LitePullConsumer
from sprocket.client.producer import Producer
from sprocket.client.pull_consumer import PullConsumer
from sprocket.client.push_consumer import PushConsumer
from sprocket.client.simple_consumer import SimpleConsumer
from sprocket.client.transactional_producer import TransactionalProducer
from sprocket.message.message import Message, StoredMessage
from sprocket.standalone import Standalone
from sprocket.testing.cluster import Cluster
from sprocket.testing.loop import simulate
from sprocket.testing.network import Network
from tests.support import LONGEST, calls_of

Spans = Callable[[str], list[ReadableSpan]]


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Spans:
    """What was exported, by the beginning of its name. The provider is the test's alone."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    monkeypatch.setattr(trace, "get_tracer", lambda *given: provider.get_tracer("test"))

    def named(beginning: str) -> list[ReadableSpan]:
        found = exporter.get_finished_spans()
        return [each for each in found if each.name.startswith(beginning)]

    return named


class Clients:
    """Makes clients of a simulated cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._count = 0

    def __call__(self, kind: Any, *names: str, **given: Any) -> Any:
        self._count += 1
        _, world = self._cluster.client(f"app-{self._count}")
        return kind(*names, nameservers=self._cluster.nameserver_addresses, world=world, **given)


def played(test: Callable[[Clients], Awaitable[None]]) -> None:
    async def main(network: Network) -> None:
        cluster = Cluster(network)
        await cluster.start()
        await test(Clients(cluster))

    simulate(main)


def traced(span: ReadableSpan) -> tuple[int, int]:
    context = span.get_span_context()
    assert context is not None
    return context.trace_id, context.span_id


def links(span: ReadableSpan) -> list[tuple[int, int]]:
    return [(each.context.trace_id, each.context.span_id) for each in span.links]


def attributes(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


async def arrived(got: list[Any], count: int) -> None:
    async with asyncio.timeout(120):
        while len(got) < count:  # noqa: ASYNC110  (in virtual time)
            await asyncio.sleep(0.1)


def test_a_send_is_a_span_whose_context_the_message_carries(spans: Spans) -> None:
    async def test(client: Clients) -> None:
        async with client(Producer, "shop") as producer:
            message = Message("orders", b"one", tag="new", keys=["o-1"], properties={"a": "b"})
            sent = await producer.send(message)
            assert dict(message.properties) == {"a": "b"}
        (span,) = spans("send")
        assert (span.name, span.kind) == ("send orders", SpanKind.PRODUCER)
        found = attributes(span)
        assert found.pop("messaging.client.id")
        assert found.pop("server.address")
        assert found.pop("server.port")
        assert found == {
            "messaging.system": "rocketmq",
            "messaging.operation.name": "send",
            "messaging.operation.type": "send",
            "messaging.destination.name": "orders",
            "messaging.destination.partition.id": f"broker-0:{sent.queue.number}",
            "messaging.message.id": sent.message_id,
            "messaging.message.body.size": 3,
            "rocketmq.message.type": "normal",
            "rocketmq.message.tag": "new",
            "rocketmq.message.keys": ("o-1",),
        }
        async with client(PullConsumer, "reader") as reader:
            pulled = await reader.pull(sent.queue, sent.queue_offset)
        (stored,) = pulled.messages
        assert stored.properties["a"] == "b"
        trace_id, span_id = traced(span)
        assert stored.properties["traceparent"].startswith(f"00-{trace_id:032x}-{span_id:016x}-")
        (received,) = spans("receive")
        assert (received.name, received.kind) == ("receive orders", SpanKind.CLIENT)
        assert links(received) == [traced(span)]
        assert attributes(received)["messaging.consumer.group.name"] == "reader"
        assert attributes(received)["messaging.batch.message_count"] == 1

    played(test)


@pytest.mark.parametrize("mode", ["pull", "pop"])
@pytest.mark.parametrize("is_blocking", [False, True])
def test_a_listener_s_call_belongs_to_the_message_s_trace(
    spans: Spans, mode: str, is_blocking: bool
) -> None:
    got: list[str] = []

    def plain(message: StoredMessage) -> None:
        got.append(f"{trace.get_current_span().get_span_context().span_id:016x}")

    async def awaited(message: StoredMessage) -> None:
        plain(message)

    async def main() -> None:
        async with Standalone(store=None) as node:
            servers = node.nameserver_address
            consumer = PushConsumer("billing", nameservers=servers, start="first", mode=mode)  # type: ignore[arg-type]
            consumer.subscribe("orders", listener=plain if is_blocking else awaited)
            async with Producer("shop", nameservers=servers) as producer:
                await producer.send(Message("orders", b"one"))
                async with consumer:
                    await arrived(got, 1)

    asyncio.run(main())
    (sent,), (processed,) = spans("send"), spans("process")
    assert (processed.name, processed.kind) == ("process orders", SpanKind.CONSUMER)
    assert processed.parent is not None
    assert (processed.parent.trace_id, processed.parent.span_id) == traced(sent)
    assert links(processed) == [traced(sent)]
    assert got == [f"{traced(processed)[1]:016x}"]
    found = attributes(processed)
    assert found["messaging.operation.type"] == "process"
    assert found["messaging.consumer.group.name"] == "billing"
    assert found["messaging.message.id"] == attributes(sent)["messaging.message.id"]


def test_a_listener_that_fails_is_a_span_that_failed(spans: Spans) -> None:
    got: list[int] = []

    async def fails(message: StoredMessage) -> Later | None:
        got.append(message.reconsume_times)
        if len(got) == 1:
            raise ZeroDivisionError("no")
        return Later(1) if len(got) == 2 else None

    async def test(client: Clients) -> None:
        consumer = client(PushConsumer, "billing", start="first")
        consumer.on("orders")(fails)
        async with client(Producer, "shop") as producer, consumer:
            await producer.send(Message("orders", b"one"))
            await arrived(got, 3)
        first, second, third = spans("process")
        assert first.status.status_code is second.status.status_code is StatusCode.ERROR
        assert third.status.status_code is StatusCode.UNSET
        assert attributes(first)["error.type"] == "ZeroDivisionError"
        assert attributes(second)["error.type"] == "Later"
        assert [each.name for each in first.events] == ["exception"]
        (sent,) = spans("send")
        assert {links(each)[0] for each in (first, second, third)} == {traced(sent)}

    played(test)


def test_each_message_of_a_batch_has_a_span_for_its_creation(spans: Spans) -> None:
    got: list[StoredMessage] = []

    async def take(messages: list[StoredMessage]) -> None:
        got.extend(messages)

    async def test(client: Clients) -> None:
        consumer = client(PushConsumer, "billing", start="first")
        consumer.on("orders", batch=10)(take)
        async with client(Producer, "shop") as producer:
            await producer.send_batch([Message("orders", b"%d" % each) for each in range(3)])
            async with consumer:
                await arrived(got, 3)
        created = spans("create")
        assert [each.kind for each in created] == [SpanKind.PRODUCER] * 3
        (sent,) = spans("send")
        assert sent.kind is SpanKind.CLIENT
        assert links(sent) == [traced(each) for each in created]
        assert attributes(sent)["messaging.batch.message_count"] == 3
        processed = spans("process")
        assert sorted(link for each in processed for link in links(each)) == sorted(
            traced(each) for each in created
        )
        assert all(each.parent is None for each in processed)

    played(test)


def test_a_context_that_a_message_has_already_stays(spans: Spans) -> None:
    own = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

    async def test(client: Clients) -> None:
        async with client(Producer, "shop") as producer:
            sent = await producer.send(Message("orders", b"x", properties={"traceparent": own}))
            broken = await producer.send(Message("orders", b"x", properties={"traceparent": "x"}))
        async with client(PullConsumer, "reader") as reader:
            (stored,) = (await reader.pull(sent.queue, sent.queue_offset)).messages
            (mended,) = (await reader.pull(broken.queue, broken.queue_offset)).messages
        assert stored.properties["traceparent"] == own
        assert mended.properties["traceparent"] != "x"
        first, second = spans("send")
        assert [f"{each.context.span_id:016x}" for each in first.links] == ["b7ad6b7169203331"]
        assert not second.links

    played(test)


def test_a_transaction_is_a_send_and_a_settlement(spans: Spans) -> None:
    async def test(client: Clients) -> None:
        async with client(TransactionalProducer, "shop") as producer:
            async with producer.transaction(Message("orders", b"one")) as committed:
                pass
            async with producer.transaction(Message("orders", b"two")) as rolled_back:
                rolled_back.roll_back()
            await producer.send_in_transaction(
                Message("orders", b"three"), lambda transaction: Outcome.COMMIT
            )
        sends = spans("send")
        assert [attributes(each)["rocketmq.message.type"] for each in sends] == ["transaction"] * 3
        commits, rollbacks = spans("commit"), spans("rollback")
        assert (len(commits), len(rollbacks)) == (2, 1)
        assert links(commits[0]) == [traced(sends[0])]
        assert attributes(commits[0])["messaging.message.id"] == committed.id
        assert attributes(rollbacks[0])["messaging.operation.type"] == "settle"
        assert links(rollbacks[0]) == [traced(sends[1])]

    played(test)


def test_a_simple_consumer_receives_and_settles(spans: Spans) -> None:
    async def test(client: Clients) -> None:
        async with (
            client(Producer, "shop") as producer,
            client(SimpleConsumer, "billing", start="first") as consumer,
        ):
            for _ in range(3):
                await producer.send(Message("orders", b"one"))
            consumer.subscribe("orders")
            found: list[Any] = []
            while len(found) < 3:
                found += await consumer.receive(3, wait_ms=5_000)
            await consumer.ack(iter(found[:2]))
            await consumer.change_invisible_time(found[2], 1_000)
            assert await consumer.receive(1, wait_ms=10) == []
        received = spans("receive")
        assert sum(attributes(e)["messaging.batch.message_count"] for e in received) == 3
        sends = [traced(each) for each in spans("send")]
        assert sorted(link for each in received for link in links(each)) == sorted(sends)
        (acked,), (hidden,) = spans("ack"), spans("change_invisible_time")
        assert (acked.kind, attributes(acked)["messaging.batch.message_count"]) == (
            SpanKind.CLIENT, 2,
        )  # fmt: skip
        assert len(links(acked)) == 2
        assert len(links(hidden)) == 1
        assert hidden.name == "change_invisible_time orders"

    played(test)


def test_a_lite_pull_consumer_receives_and_commits(spans: Spans) -> None:
    async def test(client: Clients) -> None:
        consumer = client(LitePullConsumer, "billing", start="first")
        consumer.subscribe("orders")
        async with client(Producer, "shop") as producer, consumer:
            await producer.send(Message("orders", b"one"))
            while not await consumer.poll(1_000):
                pass
            await consumer.commit()
        (received,), (committed,) = spans("receive"), spans("commit")
        assert links(received) == [traced(spans("send")[0])]
        assert attributes(committed)["messaging.operation.type"] == "settle"

    played(test)


def test_without_an_event_loop_the_caller_s_span_is_the_parent(spans: Spans) -> None:
    import threading

    ready, done = threading.Event(), threading.Event()
    addresses: list[str] = []

    def serve() -> None:
        async def main() -> None:
            async with Standalone(store=None) as node:
                addresses.append(node.nameserver_address)
                ready.set()
                await asyncio.to_thread(done.wait, LONGEST)

        asyncio.run(main())

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        assert ready.wait(60)
        with (
            blocking.Producer("shop", nameservers=addresses[0]) as producer,
            trace.get_tracer("test").start_as_current_span("outer") as outer,
        ):
            producer.send(Message("orders", b"one"))
    finally:
        done.set()
        thread.join()
    (sent,) = spans("send")
    assert sent.parent is not None
    assert sent.parent.span_id == outer.get_span_context().span_id


def test_a_send_that_fails_says_how(spans: Spans) -> None:
    async def test(client: Clients) -> None:
        async with client(Producer, "shop") as producer:
            for wrong in (Message("orders", b""), Message("orders", b"x", keys="k"), "no message"):
                with pytest.raises(SprocketError):
                    await producer.send(wrong)
                with pytest.raises(SprocketError):
                    await producer.send_batch([wrong])
            for none in ([], "messages", None):
                with pytest.raises(UsageError):
                    await producer.send_batch(none)
        failed = spans("send")
        assert failed
        assert {each.status.status_code for each in failed} == {StatusCode.ERROR}
        assert {attributes(each)["error.type"] for each in failed} == {"UsageError"}

    played(test)


def test_spans_are_off_unless_the_program_or_the_setting_wants_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def made(setting: str) -> bool:
        config = replace(ProducerConfig(), spans=setting)
        return spans_of(Producer("shop", nameservers="127.0.0.1:9876", config=config)) is not None

    assert (made("auto"), made("on"), made("off")) == (False, True, False)
    monkeypatch.setattr(trace, "get_tracer_provider", TracerProvider)
    assert (made("auto"), made("on"), made("off")) == (True, True, False)
    assert replace(ConsumerConfig(), spans="on").spans == "on"
    assert LitePullConfig().spans == "auto"


def test_without_spans_a_send_asks_for_them_once() -> None:
    producer = Producer("shop", nameservers="127.0.0.1:9876")
    assert producer._spans is None
    # An attribute of the object, so that looking at it calls nothing.
    assert calls_of(lambda: producer._spans) == calls_of(lambda: producer.group)
