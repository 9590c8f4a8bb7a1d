"""Waits for messages in Airflow's triggerer; each is an event that starts DAGs."""

from __future__ import annotations

import asyncio
import base64
import logging
from collections.abc import AsyncIterator, Hashable, Sequence
from typing import Any

from airflow.sdk import BaseHook
from airflow.triggers.base import BaseEventTrigger, TriggerEvent
from airflow.triggers.shared_stream import AdvanceItem, SharedStreamProducer

from sprocket.base.errors import SprocketError
from sprocket.client.pop_config import SimpleConfig
from sprocket.client.simple_consumer import SimpleConsumer
from sprocket.message.popped_message import PoppedMessage
from sprocket.message.properties import RESERVED

logger = logging.getLogger(__name__)

#: Messages that are received and not acknowledged, at most; Airflow fails a trigger whose queue of
#: 1,024 is full.
_WAITING_MAX = 64
_AGAIN_S = 5.0
_SETTINGS = ("topic", "group", "nameservers", "conn_id", "tags", "start", "invisible_s")


class RocketMQMessageTrigger(BaseEventTrigger):
    """Fires for each message of a topic, as a member of a consumer group.

    Triggers with equal arguments share one consumer. A message is acknowledged once Airflow's
    database has its event; if the triggerer dies before, it comes again after `invisible_s`. So
    each message starts a DAG at least once.

    Args:
        topic: the topic.
        group: the consumer group. All triggerers with one group share the messages.
        nameservers: `host:port`, several with `;` between them; None: from the connection.
        conn_id: a connection of Airflow, of any type: its host and port are those of a name server
            unless `nameservers` is given, its login and password the access and secret keys.
        tags: which messages: `"new || paid"`.
        start: where a group without offsets begins: `first` or `last`.
        invisible_s: how long a message that was received stays invisible to others, s; more than
            the 300 s after which Airflow takes an event for failed.
    """

    def __init__(
        self,
        topic: str,
        group: str,
        nameservers: str | None = None,
        conn_id: str | None = None,
        tags: str = "*",
        start: str = "last",
        invisible_s: float = 600.0,
        **other: Any,
    ) -> None:
        super().__init__(**other)
        self.topic = topic
        self.group = group
        self.nameservers = nameservers
        self.conn_id = conn_id
        self.tags = tags
        self.start = start
        self.invisible_s = invisible_s

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """What Airflow keeps, to make the trigger again in a triggerer; it has no secrets."""
        kind = type(self)
        return (
            f"{kind.__module__}.{kind.__qualname__}",
            {name: getattr(self, name) for name in _SETTINGS},
        )

    def shared_stream_key(self) -> Hashable:
        """What triggers that share a consumer have in common."""
        return ("rocketmq", *(getattr(self, name) for name in _SETTINGS))

    @classmethod
    def create_shared_stream_producer(cls, kwargs: dict[str, Any]) -> SharedStreamProducer:
        """The consumer that triggers with these arguments share."""
        return MessageStream(cls(**{name: kwargs[name] for name in _SETTINGS if name in kwargs}))

    async def filter_shared_stream(
        self, shared_stream: AsyncIterator[dict[str, Any]]
    ) -> AsyncIterator[TriggerEvent]:
        """An event for each message."""
        async for payload in shared_stream:
            yield TriggerEvent(payload)

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """The events, for programs that run the trigger by themselves; Airflow shares streams.

        A message is acknowledged when the next event is asked for.
        """
        stream = MessageStream(self)
        try:
            async for payload, message in stream.open_stream():
                yield TriggerEvent(payload)
                await stream.done([message])
        finally:
            await stream.aclose()

    async def consumer(self) -> SimpleConsumer:
        """A consumer that is not started yet."""
        nameservers, config = self.nameservers, None
        if self.conn_id is not None:
            found = await BaseHook.aget_connection(self.conn_id)
            if nameservers is None and found.host:
                nameservers = f"{found.host}:{found.port or 9876}"
            if found.login:
                config = SimpleConfig(access_key=found.login, secret_key=found.password or "")
        start: Any = self.start
        made = SimpleConsumer(self.group, nameservers=nameservers, start=start, config=config)
        made.subscribe(self.topic, tags=self.tags)
        return made


class MessageStream(SharedStreamProducer):
    """Receives messages, and acknowledges those of which Airflow has the events."""

    def __init__(self, trigger: RocketMQMessageTrigger) -> None:
        self._trigger = trigger
        self._consumer: SimpleConsumer | None = None
        self._room = asyncio.Semaphore(_WAITING_MAX)

    async def open_stream(self) -> AsyncIterator[tuple[dict[str, Any], PoppedMessage]]:
        """The messages, as values of JSON and as they are. Waits while no server is reached."""
        self._consumer = consumer = await self._trigger.consumer()
        await consumer.start()
        invisible_ms = int(self._trigger.invisible_s * 1000)
        while True:
            await self._room.acquire()
            try:
                received = await consumer.receive(1, invisible_ms=invisible_ms)
            except SprocketError as error:
                logger.warning("topic %s is not received: %s", self._trigger.topic, error)
                await asyncio.sleep(_AGAIN_S)
                received = []
            if not received:
                self._room.release()
            for message in received:
                yield payload_of(message), message

    async def advance(self, batch: Sequence[AdvanceItem]) -> None:
        """Acknowledges what Airflow has taken, or refused for good; the rest comes again."""
        taken = [item.broker_payload for item in batch if item.outcome.is_clean]
        refused = [item.broker_payload for item in batch if item.outcome.rejected]
        for message in refused:
            if self._consumer is not None:
                await self._consumer.forward_to_dead_letters(message)
            self._room.release()
        for _ in range(len(batch) - len(taken) - len(refused)):
            self._room.release()
        await self.done(taken)

    async def done(self, messages: Sequence[PoppedMessage]) -> None:
        """Acknowledges messages. One that cannot be acknowledged comes again."""
        for message in messages:
            self._room.release()
            try:
                if self._consumer is not None:
                    await self._consumer.ack(message)
            except SprocketError as error:
                logger.warning("message %s comes again: %s", message.message_id, error)

    def get_advance_lane(self, broker_payload: PoppedMessage) -> Hashable:
        """Messages are acknowledged one by one, in any order."""
        return broker_payload.message_id

    async def aclose(self) -> None:
        """Leaves the group."""
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            await consumer.close()


def payload_of(message: PoppedMessage) -> dict[str, Any]:
    """A message as a value of JSON; `body` if it is text, else `body_base64`."""
    found: dict[str, Any] = {
        "topic": message.topic,
        "message_id": message.message_id,
        "tag": message.tag,
        "keys": list(message.keys),
        "properties": {
            name: value for name, value in message.properties.items() if name not in RESERVED
        },
        "born_ms": message.born_ms,
        "tries_before": message.reconsume_times,
    }
    try:
        found["body"] = message.body.decode()
    except UnicodeDecodeError:
        found["body_base64"] = base64.b64encode(message.body).decode()
    return found
