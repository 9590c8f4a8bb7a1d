"""A message is followed by the traces of its clients, Java's and ours."""

from __future__ import annotations

import asyncio
from typing import Any

from sprocket import Message, ProducerConfig, PushConsumer
from sprocket.client.tracing import Tracer
from sprocket.console.operations.traces import steps_of
from sprocket.testing.cluster import Cluster
from tests.console.operations.test_message_facts import stored
from tests.console.parts import Operating, operated
from tests.message.test_traces import AFTER, BEFORE, OLD_PUB, PUB


def steps(*bodies: str, message_id: str = "7F01") -> list[dict[str, Any]]:
    found = steps_of([stored(body.encode()) for body in bodies], message_id)
    return [{name: getattr(each, name) for name in each.__struct_fields__} for each in found]


def test_begin_and_end_of_a_consumption_are_one_step() -> None:
    # The end may lie in an earlier message than the begin, and the send in the last.
    (consumed,) = steps(AFTER, BEFORE)
    sent, again = steps(BEFORE, AFTER + PUB)
    assert (sent["what"], sent["took_ms"], sent["is_ok"]) == ("sent", 3, True)
    assert consumed == again
    assert (again["group"], again["took_ms"], again["retries"]) == ("billing", 5, 2)
    assert (again["is_ok"], again["result"]) == (True, "success")


def test_what_clients_write_is_bounded_and_never_an_error() -> None:
    (alone,) = steps(BEFORE)
    assert (alone["is_ok"], alone["took_ms"]) == (None, None)
    assert steps(AFTER) == []
    (old,) = steps(OLD_PUB, message_id="7F02")
    assert old["is_ok"] is False
    wild = PUB.replace("1700000000000", "9" * 40).replace("shop", "x" * 5_000)
    (step,) = steps(wild)
    assert (step["at"], len(step["group"])) == (None, 300)
    (strange,) = steps(BEFORE + AFTER.replace("\x010\x01", "\x0177\x01"))
    assert strange["result"] is None


def test_our_clients_traces_are_found() -> None:
    async def test(do: Operating, cluster: Cluster) -> None:
        await do("topics.create", topic="orders", queues=1)
        names = cluster.nameserver_addresses
        world = cluster.client("someone")[1]
        done = asyncio.Event()

        def bill(message: Message) -> None:
            done.set()

        async with Tracer(nameservers=names, world=world, config=ProducerConfig()) as tracer:
            async with tracer.producer("shop", nameservers=names, world=world) as producer:
                sent = await producer.send(Message("orders", b"one book"))
            async with PushConsumer(
                "billing", nameservers=names, start="first", world=world
            ) as consumer:
                consumer.subscribe("orders", listener=tracer.around("billing", bill))
                await done.wait()
        await asyncio.sleep(5)
        found = (await do("messages.trace", id=sent.message_id)).steps
        assert [(each.what, each.group, each.is_ok) for each in found] == [
            ("sent", "shop", True),
            ("consumed", "billing", True),
        ]
        assert (await do("messages.trace", id="none-such")).steps == []
        assert (await do("messages.trace", id=sent.message_id, trace_topic="other")).steps == []

    operated(test)
