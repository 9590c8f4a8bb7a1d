"""Message traces in the format of the Java clients: when each message was sent and consumed.

    async with Tracer(nameservers=names) as tracer:
        async with tracer.producer("order-senders", nameservers=names) as producer: ...
        consumer.subscribe("orders", listener=tracer.around("billing", listen))

The events are sent to `RMQ_SYS_TRACE_TOPIC`, up to a hundred in a message, where Java's tools and
the pipeline `trace` find them. Tracing never delays, changes or fails the traced sends and
listeners: events that cannot be sent, or that are too many, are dropped and counted. Clients
without tracing have no cost.

Source: AsyncTraceDispatcher, TraceDataEncoder, SendMessageTraceHookImpl and
ConsumeMessageTraceHookImpl of RocketMQ 5.x.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import itertools
import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from sprocket.base.errors import SprocketError
from sprocket.base.troubles import Troubles
from sprocket.client.base.lifecycle import Lifecycle
from sprocket.client.base.subscription import Later, Listener, MessageListener
from sprocket.client.base.world import ClientEnvironment
from sprocket.client.config import ProducerConfig
from sprocket.client.producer import Producer
from sprocket.client.sending.many import SomeNotSent
from sprocket.client.sending.sender import Sent
from sprocket.clientcore.replies import SendStatus
from sprocket.message.ids import parse_offset_id
from sprocket.message.message import Message, StoredMessage
from sprocket.message.queue import QueueId
from sprocket.message.topic import TRACE

logger = logging.getLogger(__name__)

#: The producer group of traces, as in Java.
GROUP = "_INNER_TRACE_PRODUCER"
_REGION = "DefaultRegion"
_FIELD_END, _EVENT_END = "\x01", "\x02"
#: How many events one message has at most.
_EVENTS_MAX = 100
#: How many characters the keys of one message may have; a query finds a trace by these keys.
_KEYS_MAX = 20_000
#: How many events may wait to be sent.
_WAITING_MAX = 10_000
_PLAIN, _DELAYED = 0, 3
#: Results of a listener, as numbers of Java's ConsumeReturnType.
_SUCCESS, _RAISED, _FAILED = 0, 2, 4


class Tracer(Lifecycle):
    """Records when messages are sent and consumed, and sends these events periodically::

        async with Tracer(nameservers=servers) as tracer:
            async with tracer.producer("shop", nameservers=servers) as producer:
                await producer.send(Message("orders", b"one book"))
            async with PushConsumer("billing", nameservers=servers) as consumer:
                consumer.subscribe("orders", listener=tracer.around("billing", bill))
                ...

    Tracing never delays or fails the traced sends and listeners. Up to 10,000 events wait in
    memory; further ones are dropped.

    Args:
        nameservers: as for `Producer`; usually the same as for the traced clients.
        topic: the topic for the events; by default `RMQ_SYS_TRACE_TOPIC`.
        every_s: seconds between two sends of events.
        config: settings of the producer that sends them.
        world: clock and randomness, for simulations.

    Attributes:
        dropped: how many events were dropped, because too many waited or their send failed.

    Raises:
        ConfigError: there is no name server, or an address is invalid.
    """

    def __init__(
        self,
        *,
        nameservers: str | Sequence[str] | None = None,
        topic: str = TRACE,
        every_s: float = 0.5,
        config: ProducerConfig | None = None,
        world: ClientEnvironment | None = None,
    ) -> None:
        self._world = world or ClientEnvironment.real()
        self._topic = topic
        self._every_s = every_s
        self._producer = Producer(GROUP, nameservers=nameservers, config=config, world=world)
        #: An event's text, and the keys by which it is found. Filled from listeners' threads too.
        self._waiting: deque[tuple[str, tuple[str, ...]]] = deque()
        self._requests = map("{}-{}".format, itertools.repeat(self._token()), itertools.count())
        self._sending: asyncio.Task[None] | None = None
        self._troubles = Troubles(lambda: asyncio.get_running_loop().time(), logger)
        self.dropped = 0

    async def start(self) -> None:
        """Starts to send events in the background."""
        if self._sending is None:
            await self._producer.start()
            self._sending = asyncio.ensure_future(self._keep_sending())

    async def close(self) -> None:
        """Sends the waiting events, and stops."""
        sending, self._sending = self._sending, None
        if sending is not None:
            sending.cancel()
            await asyncio.wait([sending])
            await self._send_waiting()
            await self._producer.close()

    def producer(self, group: str, **given: Any) -> Producer:
        """Returns a producer that traces each successful `send`, `send_batch` and `send_many`.

        Args:
            group: the producer group.
            given: further arguments, as for `Producer`.
        """
        return _TracedProducer(group, self, **given)

    def around(self, group: str, listener: MessageListener) -> MessageListener:
        """Returns a listener that calls another one and traces it; not for batch listeners.

        Args:
            group: the consumer group.
            listener: the listener to trace.

        Raises:
            UsageError: the listener is not a function of one message.
        """
        if not Listener.of(listener, None).is_blocking:

            @functools.wraps(listener)
            async def awaited(message: StoredMessage) -> Any:
                with self._consuming(group, message) as ended:
                    result = await listener(message)  # type: ignore[misc]
                    ended(result)
                return result

            return awaited

        @functools.wraps(listener)
        def called(message: StoredMessage) -> Any:
            with self._consuming(group, message) as ended:
                result = listener(message)
                ended(result)
            return result

        return called

    def sent(self, group: str, messages: Sequence[Message], sent: Sequence[Sent], ms: int) -> None:
        """Records a send of one or more messages.

        Args:
            group: the producer group.
            messages, sent: the messages, and the results of the send.
            ms: when the send began, in ms since 1970 UTC.
        """
        first, tag = messages[0], messages[0].tag or ""
        keys = " ".join(first.keys)
        ids = ",".join(one.message_id for one in sent)
        store_host, _ = parse_offset_id(sent[0].offset_id)
        size = sum(len(one.body) for one in messages)
        kind = _DELAYED if first.waits else _PLAIN
        is_ok = sent[0].status is SendStatus.OK
        self._note(
            (*(one.message_id for one in sent), *first.keys),
            "Pub", ms, _REGION, group, first.topic, ids, tag, keys, store_host, size,
            self._now_ms() - ms, kind, sent[0].offset_id, is_ok, self._world.host,
        )  # fmt: skip

    @contextlib.contextmanager
    def _consuming(self, group: str, message: StoredMessage) -> Iterator[Callable[[object], None]]:
        began_ms, request = self._now_ms(), next(self._requests)
        message_id, keys = message.message_id or "", " ".join(message.keys)
        found_by = (message_id, *message.keys)
        self._note(
            found_by, "SubBefore", began_ms, _REGION, group, request, message_id,
            message.reconsume_times, keys,
        )  # fmt: skip
        code = _RAISED

        def ended(result: object) -> None:
            nonlocal code
            code = _FAILED if isinstance(result, Later) else _SUCCESS

        try:
            yield ended
        finally:
            ended_ms = self._now_ms()
            self._note(
                found_by, "SubAfter", request, message_id, ended_ms - began_ms, code == _SUCCESS,
                keys, code, ended_ms, group,
            )  # fmt: skip

    def _note(self, found_by: tuple[str, ...], *fields: object) -> None:
        if len(self._waiting) >= _WAITING_MAX:
            self.dropped += 1
            return
        texts = (str(one).lower() if isinstance(one, bool) else str(one) for one in fields)
        self._waiting.append((_FIELD_END.join(texts) + _EVENT_END, found_by))

    async def _keep_sending(self) -> None:
        while True:
            await asyncio.sleep(self._every_s)
            await self._send_waiting()

    async def _send_waiting(self) -> None:
        while self._waiting:
            text, keys, count = self._take()
            try:
                await self._producer.send(Message(self._topic, text.encode(), keys=keys))
            except SprocketError as error:
                self.dropped += count
                text = f"message traces cannot be sent to {self._topic}, and are dropped"
                self._troubles.failed("traces", text, error)
            else:
                self._troubles.ended("traces", f"message traces are sent to {self._topic} again")

    def _take(self) -> tuple[str, list[str], int]:
        """Removes events for one message; returns its text, its keys and the number of events."""
        texts: list[str] = []
        keys: dict[str, None] = {}
        size = 0
        while self._waiting and len(texts) < _EVENTS_MAX and size < _KEYS_MAX:
            text, found_by = self._waiting.popleft()
            texts.append(text)
            keys.update(dict.fromkeys(filter(None, found_by)))
            size = sum(map(len, keys))
        return "".join(texts), list(keys), len(texts)

    def _now_ms(self) -> int:
        return self._world.clock.now_ms()

    def _token(self) -> str:
        return self._world.entropy.token(8).hex().upper()


class _TracedProducer(Producer):
    """A producer that reports its sends to a tracer."""

    def __init__(self, group: str, tracer: Tracer, **given: Any) -> None:
        super().__init__(group, **given)
        self._tracer = tracer

    async def send(self, message: Message | str, body: object = None, **given: Any) -> Sent:
        """As `Producer.send`."""
        whole: Any = message
        if body is not None:
            whole = await self._typed.message(message, body, {})
        began_ms = self._tracer._now_ms()
        sent = await super().send(whole, **given)
        self._tracer.sent(self.group, [whole], [sent], began_ms)
        return sent

    async def send_batch(self, messages: Sequence[Message], **given: Any) -> list[Sent]:
        """As `Producer.send_batch`."""
        began_ms = self._tracer._now_ms()
        sent = await super().send_batch(messages, **given)
        self._tracer.sent(self.group, messages, sent, began_ms)
        return sent

    async def send_many(self, messages: Iterable[Message], **given: Any) -> list[Sent]:
        """As `Producer.send_many`."""
        began_ms, messages = self._tracer._now_ms(), list(messages)
        places: dict[int, Sent] = {}
        try:
            sent = await super().send_many(messages, **given)
            places.update(enumerate(sent))
        except SomeNotSent as error:
            places.update(error.sent)
            raise
        finally:
            by_queue: dict[QueueId, list[int]] = {}
            for place, one in places.items():
                by_queue.setdefault(one.queue, []).append(place)
            for some in by_queue.values():
                of_queue = [messages[place] for place in some]
                self._tracer.sent(self.group, of_queue, [places[p] for p in some], began_ms)
        return sent
