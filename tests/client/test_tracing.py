from __future__ import annotations

import asyncio

import pytest

from sprocket.base.errors import UsageError
from sprocket.client.base.subscription import Later
from sprocket.client.config import ProducerConfig
from sprocket.client.push_consumer import PushConsumer
from sprocket.client.sending.sender import Sent
from sprocket.client.tracing import Tracer
from sprocket.message.compression import open_body
from sprocket.message.message import Message, StoredMessage
from sprocket.message.record import decode
from tests.cli.parts import running_node
from tests.client.fakes import FakeBroker, play, world
from tests.compat.javaland import mqadmin, require_java, wait_until
from tests.support import run

TOPIC = "RMQ_SYS_TRACE_TOPIC"


def tracer_of(broker: FakeBroker, **given: float) -> Tracer:
    config = ProducerConfig(send_timeout_ms=200, retries=0)
    return Tracer(nameservers=broker.address, config=config, world=world(), **given)


def traces(broker: FakeBroker) -> list[StoredMessage]:
    return [decode(raw) for raw in broker.queue(TOPIC).records]


def events(broker: FakeBroker) -> list[list[str]]:
    """The fields of all events that have come."""
    texts = [text for one in traces(broker) for text in one.body.decode().split("\x02")]
    return [text.split("\x01") for text in texts if text]


def test_a_send_is_told_in_javas_words_and_found_by_id_and_key() -> None:
    async def main() -> None:
        async with FakeBroker({"orders": 1, TOPIC: 1}) as broker:
            async with (
                tracer_of(broker) as tracer,
                tracer.producer("senders", nameservers=broker.address, world=world()) as producer,
            ):
                sent = await producer.send(Message("orders", b"one", tag="new", keys=["o-1"]))
                both = [Message("orders", b"two"), Message("orders", b"three")]
                more = await producer.send_batch(both)
            first, batch = events(broker)
            assert first[0] == "Pub"
            assert int(first[1]) > 0
            assert first[2:8] == [
                "DefaultRegion", "senders", "orders", sent.message_id, "new", "o-1",
            ]  # fmt: skip
            assert first[9] == "3"
            assert first[11:14] == ["0", sent.offset_id, "true"]
            assert len(first) == 15
            assert batch[5] == ",".join(one.message_id for one in more)
            assert (batch[9], batch[7]) == ("8", "")
            (trace,) = traces(broker)
            ids = [sent.message_id, "o-1", *(one.message_id for one in more)]
            assert trace.keys == ids

    play(main)


def test_consumptions_are_told_with_how_they_ended() -> None:
    async def main() -> None:
        async with FakeBroker({"orders": 1, TOPIC: 1}) as broker, tracer_of(broker) as tracer:
            producer = tracer.producer("senders", nameservers=broker.address, world=world())
            async with producer:
                sent = await producer.send(Message("orders", b"one", keys=["o-1"]))
            message = decode(broker.queue("orders").records[0])

            async def takes(_: StoredMessage) -> None:
                await asyncio.sleep(0.03)

            def refuses(_: StoredMessage) -> Later:
                return Later()

            def fails(_: StoredMessage) -> None:
                raise ValueError("no stock")

            await tracer.around("billing", takes)(message)  # type: ignore[misc]
            assert tracer.around("billing", refuses)(message) == Later()
            with pytest.raises(ValueError, match="no stock"):
                tracer.around("billing", fails)(message)
            await tracer.close()
            _, *consumed = events(broker)
            befores, afters = consumed[0::2], consumed[1::2]
            for before, after in zip(befores, afters, strict=True):
                assert before[0] == "SubBefore"
                assert before[2:4] == ["DefaultRegion", "billing"]
                assert before[5:] == [sent.message_id, "0", "o-1"]
                assert after[:3] == ["SubAfter", before[4], sent.message_id]
                assert (after[5], after[8]) == ("o-1", "billing")
            ends = [(one[4], one[6]) for one in afters]
            assert ends == [("true", "0"), ("false", "4"), ("false", "2")]
            assert int(afters[0][3]) >= 30
            assert len({one[4] for one in befores}) == 3

    play(main)


def test_many_events_travel_together_and_what_cannot_be_sent_is_dropped_and_counted() -> None:
    async def main() -> None:
        async with FakeBroker({"orders": 1, TOPIC: 1}) as broker:
            tracer = tracer_of(broker)
            async with (
                tracer,
                tracer.producer("senders", nameservers=broker.address, world=world()) as producer,
            ):
                await asyncio.gather(*(producer.send(Message("orders", b"x")) for _ in range(150)))
            bodies = [open_body(one.body, one.sys_flag) for one in traces(broker)]
            assert [one.count(b"\x02") for one in bodies] == [100, 50]
            assert tracer.dropped == 0
        async with FakeBroker({"orders": 1}) as broker, tracer_of(broker) as tracer:
            producer = tracer.producer("senders", nameservers=broker.address, world=world())
            async with producer:
                await producer.send(Message("orders", b"x"))
            await tracer.close()
            assert tracer.dropped == 1

    play(main)


def test_a_listener_is_a_function() -> None:
    async def main() -> None:
        async with FakeBroker({"orders": 1}) as broker:
            with pytest.raises(UsageError, match="a listener is a function"):
                tracer_of(broker).around("billing", 7)  # type: ignore[arg-type]

    play(main)


@pytest.mark.java
@pytest.mark.process
def test_javas_tool_finds_what_was_sent_and_consumed(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    require_java()
    store = str(tmp_path_factory.mktemp("traced"))
    with running_node(store) as names:
        sent = run(traced_once(names))
        found = ""

        def is_found() -> bool:
            nonlocal found
            found = mqadmin("queryMsgTraceById", "-i", sent.message_id, namesrv=names)
            return "billing" in found

        wait_until(is_found)
    assert "senders" in found
    assert found.count("success") == 2


async def traced_once(names: str) -> Sent:
    """One message, sent and consumed under the eyes of a tracer."""
    got = asyncio.Event()

    async def listen(_: StoredMessage) -> None:
        got.set()

    async with Tracer(nameservers=names) as tracer:
        async with tracer.producer("senders", nameservers=names) as producer:
            sent = await producer.send(Message("orders", b"one", keys=["o-1"]))
        async with PushConsumer("billing", nameservers=names, start="first") as consumer:
            consumer.subscribe("orders", listener=tracer.around("billing", listen))
            await asyncio.wait_for(got.wait(), 30)
    return sent
