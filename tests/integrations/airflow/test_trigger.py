"""Airflow's triggers on topics. `make test-airflow` installs Airflow and runs these."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import pytest

from sprocket.testing.node_thread import NodeThread
from tests.support import LONGEST, run

pytest.importorskip("airflow.triggers.shared_stream", reason="`make test-airflow` has Airflow")

from airflow.sdk import Connection
from airflow.triggers.shared_stream import SharedStreamManager

from sprocket.integrations.airflow import get_provider_info
from sprocket.integrations.airflow.trigger import MessageStream, RocketMQMessageTrigger

pytestmark = pytest.mark.process


def trigger(node: NodeThread, topic: str, **options: Any) -> RocketMQMessageTrigger:
    return RocketMQMessageTrigger(
        topic, "dags", nameservers=node.nameservers, start="first", **options
    )


def test_airflow_finds_the_scheme() -> None:
    from airflow.providers.common.messaging.triggers.msg_queue import MessageQueueTrigger

    found = MessageQueueTrigger(scheme="rocketmq", topic="orders", group="dags").trigger
    assert isinstance(found, RocketMQMessageTrigger)
    path, arguments = found.serialize()
    assert path == "sprocket.integrations.airflow.trigger.RocketMQMessageTrigger"
    again = RocketMQMessageTrigger(**arguments)
    assert again.shared_stream_key() == found.shared_stream_key()
    assert get_provider_info()["package-name"] == "sprocketmq"


def test_each_message_is_an_event_and_acknowledged_with_the_next(
    own_rocketmq: NodeThread,
) -> None:
    topic = own_rocketmq.topic("orders")
    own_rocketmq.send(topic, "one", tag="new", keys=["o-1"], properties={"by": "shop"})
    own_rocketmq.send(topic, "skipped", tag="old")
    own_rocketmq.send(topic, b"\xff", tag="new")

    async def scenario() -> None:
        events = trigger(own_rocketmq, topic, tags="new").run()
        first = (await asyncio.wait_for(anext(events), LONGEST)).payload
        assert (first["body"], first["tag"], first["keys"]) == ("one", "new", ["o-1"])
        assert (first["properties"], first["tries_before"]) == ({"by": "shop"}, 0)
        second = (await asyncio.wait_for(anext(events), LONGEST)).payload
        assert second["body_base64"] == "/w=="
        await events.aclose()

    run(scenario())


def test_a_message_is_acknowledged_once_airflow_has_stored_its_event(
    own_rocketmq: NodeThread,
) -> None:
    topic = own_rocketmq.topic("orders")
    own_rocketmq.send(topic, "one")
    acknowledged: list[str] = []

    async def scenario(monkeypatch: pytest.MonkeyPatch) -> None:
        done, is_done = MessageStream.done, asyncio.Event()

        async def counting(self: MessageStream, messages: Any) -> None:
            await done(self, messages)
            acknowledged.extend(each.body.decode() for each in messages)
            is_done.set()

        monkeypatch.setattr(MessageStream, "done", counting)
        manager = SharedStreamManager()
        subscriber = trigger(own_rocketmq, topic)
        stream = started(manager, subscriber)
        event = await asyncio.wait_for(anext(stream), LONGEST)
        assert event.payload["body"] == "one"
        assert acknowledged == [], "the event is not stored yet"
        waiting = asyncio.ensure_future(anext(stream))  # Airflow goes on to the next
        await asyncio.wait_for(is_done.wait(), LONGEST)
        waiting.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await waiting
        await manager.stop_all()

    with pytest.MonkeyPatch.context() as patch:
        run(scenario(patch))
    assert acknowledged == ["one"]


def started(manager: SharedStreamManager, subscriber: RocketMQMessageTrigger) -> Any:
    """The events of a trigger in a shared stream, as the triggerer runs it."""
    key = subscriber.shared_stream_key()
    raw = manager.subscribe(trigger_id=1, trigger=subscriber, key=key)
    return subscriber.filter_shared_stream(raw)


def test_address_and_keys_come_from_a_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    async def found(_: str) -> Connection:
        return Connection(
            conn_id="rocket",
            conn_type="generic",
            host="broker.example",
            login="ak",
            password="secret",
        )

    monkeypatch.setattr("airflow.sdk.BaseHook.aget_connection", found)

    async def scenario() -> None:
        made = RocketMQMessageTrigger("orders", "dags", conn_id="rocket")
        consumer = await made.consumer()
        assert consumer.config.access_key == "ak"
        assert "secret" not in str(made.serialize())

    run(scenario())
