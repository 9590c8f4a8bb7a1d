"""Spans of OpenTelemetry: what a client sends, receives, processes and settles.

A client makes spans if the program has set a tracer provider, or if its setting `spans` says so. A
message carries the context in which it was created as W3C's `traceparent` in its properties, so the
spans of its consumers belong to the same trace, in whatever language they are written.

Names, kinds and attributes are those of OpenTelemetry's semantic conventions for messaging. Those
of RocketMQ alone are `rocketmq.…` there now, and were `messaging.rocketmq.…` before. Source: its
pages "Messaging Spans" and "Semantic conventions for RocketMQ", and its registry of attributes.
Only the API of OpenTelemetry is needed here; where spans go is the business of the program.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from sprocket.base.errors import UsageError
from sprocket.client.base.subscription import Later, Listener
from sprocket.message.ids import parse_offset_id
from sprocket.message.message import Message, StoredMessage

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Link, Span

AUTO, ON, OFF = "auto", "on", "off"
#: Types of messages.
NORMAL, DELAY, TRANSACTION = "normal", "delay", "transaction"
#: Messages of a batch whose contexts become links.
_LINKS_MAX = 128
_TRACEPARENT = "traceparent"

T = TypeVar("T")


class SpannedMessage(Message):
    """A message that carries its context already."""


def spans_of(client: Any) -> Spans | None:
    """The spans of a client; None if it makes none.

    Raises:
        UsageError: its setting wants some, and OpenTelemetry is not installed.
    """
    wanted = client.config.spans
    if wanted == OFF or (wanted == AUTO and not _has_provider()):
        return None
    try:
        return Spans(client.group, lambda: getattr(client._session, "client_id", None))
    except ImportError:
        raise UsageError(
            "spans need OpenTelemetry's API: pip install 'sprocketmq[spans]'"
        ) from None


def _has_provider() -> bool:
    """Whether the program has set a tracer provider; one that has not loaded the API has not."""
    trace = sys.modules.get("opentelemetry.trace")
    if trace is None:
        return False
    provider = trace.get_tracer_provider()
    return not isinstance(provider, trace.ProxyTracerProvider | trace.NoOpTracerProvider)


class Spans:
    """Makes the spans of one client.

    Args:
        group: its producer or consumer group.
        client_id: returns its client id, once it has one.
    """

    def __init__(self, group: str, client_id: Callable[[], str | None]) -> None:
        from opentelemetry import trace
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        from sprocket import __version__

        self._otel = trace
        self._tracer = trace.get_tracer("sprocket", __version__)
        self._propagator = TraceContextTextMapPropagator()
        self._group = group
        self._client_id = client_id

    # Sends.

    async def send(
        self, send: Callable[..., Awaitable[T]], message: Message, kind: str = "", **given: Any
    ) -> T:
        """Sends a message under a span, in whose context it is created.

        Args:
            send: the client's method.
            kind: the message's type, if it does not show.
            given: its other arguments.
        """
        own = self._context_in(message.properties)
        attributes = self._of_message(message, kind)
        links = self._links([own])
        with self._span("send", "send", "PRODUCER", message.topic, attributes, links) as span:
            sent = await send(self._carrying(message, is_new=own is None), **given)
            self._sent(span, sent)
            return sent

    async def send_batch(
        self, send: Callable[..., Awaitable[list[T]]], messages: Sequence[Message], **given: Any
    ) -> list[T]:
        """Sends messages under a span, each of which has one for its creation."""
        created = [self._created(each) for each in messages]
        topic = messages[0].topic
        attributes = {"messaging.batch.message_count": len(messages)}
        links = self._links(self._context_in(each.properties) for each in created)
        with self._span("send", "send", "CLIENT", topic, attributes, links) as span:
            sent = await send(created, **given)
            self._sent(span, sent[0], is_one=False)
            return sent

    def _created(self, message: Message) -> Message:
        if self._context_in(message.properties) is not None:
            return self._carrying(message, is_new=False)
        attributes = self._of_message(message, "")
        with self._span("create", "create", "PRODUCER", message.topic, attributes):
            return self._carrying(message, is_new=True)

    def _carrying(self, message: Message, *, is_new: bool) -> Message:
        """The message with the context in its properties: the current one, or that it has."""
        fields = {name: getattr(message, name) for name in Message.__struct_fields__}
        if is_new and isinstance(message.properties, Mapping):
            carrier: dict[str, str] = {}
            self._propagator.inject(carrier)
            fields["properties"] = {**message.properties, **carrier}
        return SpannedMessage(**fields)

    def _of_message(self, message: Message, kind: str) -> dict[str, Any]:
        found: dict[str, Any] = {"rocketmq.message.type": kind or _kind_of(message)}
        if isinstance(message.body, bytes):
            found["messaging.message.body.size"] = len(message.body)
        if message.tag:
            found["rocketmq.message.tag"] = message.tag
        if message.keys and not isinstance(message.keys, str):
            found["rocketmq.message.keys"] = [str(each) for each in message.keys]
        if message.delay_level:
            found["rocketmq.message.delay_time_level"] = message.delay_level
        if isinstance(message.deliver_at, int):
            found["rocketmq.message.delivery_timestamp"] = message.deliver_at
        return found

    def _sent(self, span: Span, sent: Any, *, is_one: bool = True) -> None:
        if isinstance(sent, str):  # one-way
            span.set_attribute("messaging.message.id", sent)
        elif sent is not None:
            if is_one:
                span.set_attribute("messaging.message.id", sent.message_id)
            queue = sent.queue
            span.set_attribute(
                "messaging.destination.partition.id", f"{queue.broker}:{queue.number}"
            )
            self._of_server(span, sent.offset_id)

    def _of_server(self, span: Span, offset_id: str) -> None:
        try:
            address, _ = parse_offset_id(offset_id)
        except UsageError:
            return
        host, _, port = address.rpartition(":")
        span.set_attribute("server.address", host.strip("[]"))
        span.set_attribute("server.port", int(port))

    # Receives.

    def received(self, messages: Sequence[StoredMessage], began_ns: int) -> None:
        """Makes the span of a receive that began at a time of `time.time_ns`, and found some."""
        if not messages:  # polls that find nothing would hide those that do
            return
        topics = {each.topic for each in messages}
        topic = messages[0].topic if len(topics) == 1 else ""
        attributes = self._attributes("receive", "receive", topic) | {
            "messaging.batch.message_count": len(messages),
            "messaging.consumer.group.name": self._group,
        }
        span = self._tracer.start_span(
            f"receive {topic}".strip(), kind=self._otel.SpanKind.CLIENT, attributes=attributes,
            links=self._links_of(messages), start_time=began_ns,
        )  # fmt: skip
        span.end()

    # Listeners.

    def around(self, listener: Listener) -> Listener:
        """The listener, each call of which is a span."""
        function = listener.function
        if listener.is_blocking:

            @functools.wraps(function)
            def called(payload: Any) -> Any:
                with self._processing(payload) as span:
                    return self._result(span, function(payload))

            return listener._replace(function=called)

        @functools.wraps(function)
        async def awaited(payload: Any) -> Any:
            with self._processing(payload) as span:
                return self._result(span, await function(payload))

        return listener._replace(function=awaited)

    @contextmanager
    def _processing(self, payload: Any) -> Iterator[Span]:
        messages = payload if isinstance(payload, list) else [payload]
        attributes = self._of_stored(messages, is_batch=isinstance(payload, list))
        topic = messages[0].topic
        # The span of one message belongs to the message's trace; one of several can only link.
        parent = None if isinstance(payload, list) else self._context_in(payload.properties)
        links = self._links_of(messages)
        with self._span("process", "process", "CONSUMER", topic, attributes, links, parent) as span:
            yield span

    def _result(self, span: Span, result: Any) -> Any:
        failed = result if isinstance(result, Later) else None
        if isinstance(result, list):
            failed = next((each for each in result if isinstance(each, Later)), None)
        if failed is not None:
            span.set_status(self._otel.StatusCode.ERROR, "the messages are to come again")
            span.set_attribute("error.type", "Later")
        return result

    # Settlements.

    @contextmanager
    def settling(self, name: str, messages: Sequence[StoredMessage], topic: str) -> Iterator[Span]:
        """A span around a settlement.

        Args:
            name: what is done: `ack`, `commit`, ….
            messages: those that are settled; none if it is about offsets.
        """
        attributes = self._of_stored(messages, is_batch=len(messages) != 1) if messages else {}
        attributes["messaging.consumer.group.name"] = self._group
        with self._span(
            name, "settle", "CLIENT", topic, attributes, self._links_of(messages)
        ) as span:
            yield span

    @contextmanager
    def ending(self, name: str, message: Message, message_id: str) -> Iterator[None]:
        """A span around the commit or rollback of a transaction."""
        attributes = {"messaging.message.id": message_id, "rocketmq.message.type": TRANSACTION}
        links = self._links([self._context_in(message.properties)])
        with self._span(name, "settle", "CLIENT", message.topic, attributes, links):
            yield

    # What all have.

    @contextmanager
    def _span(
        self,
        name: str,
        operation: str,
        kind: str,
        topic: str,
        attributes: Mapping[str, Any],
        links: Sequence[Link] = (),
        parent: Context | None = None,
    ) -> Iterator[Span]:
        with self._tracer.start_as_current_span(
            f"{name} {topic}".strip(), context=parent, kind=self._otel.SpanKind[kind],
            attributes={**self._attributes(name, operation, topic), **attributes}, links=links,
        ) as span:  # fmt: skip
            try:
                yield span
            except BaseException as error:  # raised again; the span says what it was
                span.set_attribute("error.type", type(error).__qualname__)
                raise

    def _attributes(self, name: str, operation: str, topic: str) -> dict[str, Any]:
        found: dict[str, Any] = {
            "messaging.system": "rocketmq",
            "messaging.operation.name": name,
            "messaging.operation.type": operation,
        }
        if topic:
            found["messaging.destination.name"] = topic
        if (client_id := self._client_id()) is not None:
            found["messaging.client.id"] = client_id
        return found

    def _of_stored(self, messages: Sequence[StoredMessage], *, is_batch: bool) -> dict[str, Any]:
        found: dict[str, Any] = {"messaging.consumer.group.name": self._group}
        if is_batch:
            found["messaging.batch.message_count"] = len(messages)
            return found
        (message,) = messages
        if message.message_id:
            found["messaging.message.id"] = message.message_id
        if message.tag:
            found["rocketmq.message.tag"] = message.tag
        if message.keys:
            found["rocketmq.message.keys"] = message.keys
        found["messaging.message.body.size"] = len(message.body)
        queue = message.queue
        found["messaging.destination.partition.id"] = f"{queue.broker}:{queue.number}"
        host, _, port = message.store_host.rpartition(":")
        if host and port.isdecimal():
            found["server.address"], found["server.port"] = host.strip("[]"), int(port)
        return found

    def _context_in(self, properties: Any) -> Context | None:
        """The context that a message carries; None if it carries none that is valid."""
        if not isinstance(properties, Mapping) or _TRACEPARENT not in properties:
            return None
        found = self._propagator.extract(
            {name: properties[name] for name in (_TRACEPARENT, "tracestate") if name in properties}
        )
        context = self._otel.get_current_span(found).get_span_context()
        return found if context.is_valid else None

    def _links_of(self, messages: Iterable[StoredMessage]) -> list[Link]:
        return self._links(self._context_in(each.properties) for each in messages)

    def _links(self, contexts: Iterable[Context | None]) -> list[Link]:
        found: list[Link] = []
        for context in contexts:
            if context is not None and len(found) < _LINKS_MAX:
                span = self._otel.get_current_span(context)
                found.append(self._otel.Link(span.get_span_context()))
        return found


def _kind_of(message: Message) -> str:
    return DELAY if message.waits else NORMAL


def wants_span(messages: object) -> bool:
    """Whether what is to be sent is messages without spans of their own; whatever else it is, the
    method that sends says what is wrong."""
    listed = [messages] if isinstance(messages, Message) else messages
    if not isinstance(listed, Sequence) or not listed:
        return False
    is_new = type(listed[0]) is not SpannedMessage
    return is_new and all(isinstance(each, Message) for each in listed)
