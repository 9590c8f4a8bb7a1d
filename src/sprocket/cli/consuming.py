"""What `sprocket consume` does: reads queues directly or joins a group, and prints messages."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import logging
import os
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any, Literal

import msgspec
import typer

from sprocket.base.backoff import pauses
from sprocket.base.decoding import decode_strictly
from sprocket.base.errors import TransportError, UsageError
from sprocket.cli import loading, render
from sprocket.cli.decoding import BodyDecoding, DecodedBody
from sprocket.cli.times import moment
from sprocket.client.config import ConsumerConfig, PullConfig
from sprocket.client.popping.message_source import Mode
from sprocket.client.pull_consumer import PullConsumer
from sprocket.client.push_consumer import PushConsumer
from sprocket.clientcore.replies import PullStatus
from sprocket.filter.choice import MessageSelector, filter_of
from sprocket.filter.python import PythonFilter
from sprocket.message.message import StoredMessage
from sprocket.message.queue import QueueId
from sprocket.runtime import process

logger = logging.getLogger(__name__)

#: The group name of pulls without `--group`. It never commits.
READER = "sprocket-cli"
#: How often `join` looks whether access control refuses the group, s.
_LOOK_SECONDS = 0.5

Start = Literal["first", "last"] | int


#: Shows a message, and its body as it was decoded, or None for the body as it is.
Show = Callable[[StoredMessage, DecodedBody | None], None]


class MessagePrinter:
    """Shows messages, at most `count_max` of them.

    Args:
        decoding: decodes bodies; None to show them as they are.
    """

    def __init__(
        self, show: Show, count_max: int | None, decoding: BodyDecoding | None = None
    ) -> None:
        self._show = show
        self._count_max = count_max
        self._count = 0
        self._decoding = decoding

    @property
    def is_full(self) -> bool:
        """Whether the limit is reached."""
        return self._count_max is not None and self._count >= self._count_max

    async def take(self, message: StoredMessage) -> None:
        """Shows a message, unless the limit is reached.

        Raises:
            RegistryUnavailable: the schema of its body has to be fetched, and cannot be.
        """
        decoded = None
        if self._decoding is not None and not self.is_full:
            decoded = await self._decoding.decoded(message.body)
        if not self.is_full:
            self._count += 1
            self._show(message, decoded)

    def report(self) -> None:
        """Says on stderr how many bodies did not fit, if any."""
        found = self._decoding
        if found is not None and found.misfits:
            typer.echo(f"{found.misfits} of {found.count} bodies do not fit", err=True)


def chosen_by(tags: str, sql: str | None, code: str | None) -> MessageSelector:
    """The filter that the options describe, checked.

    Args:
        code: a Python file, followed by a colon and the function's name if that differs from the
            file's; or the name of an uploaded filter.

    Raises:
        UsageError: the file cannot be read, the filter is invalid, or several are given.
    """
    choice: MessageSelector = {
        "tags": tags,
        "sql": sql,
        "code": None if code is None else _filter_in(code),
    }
    filter_of(**choice)
    return choice


def _filter_in(text: str) -> PythonFilter:
    path, _, name = text.partition(":")
    if not path.endswith(".py"):
        return PythonFilter(None, text)
    try:
        source = decode_strictly(Path(path).read_bytes(), path)
    except OSError as error:
        raise UsageError(f"--code {path}: {error.strerror}") from None
    secret = os.environ.get("SPROCKET_FILTER_SECRET")
    return PythonFilter(source, name or Path(path).stem, secret=secret)


def run(main: Coroutine[Any, Any, None]) -> int:
    """Runs `read` or `join` until it ends or a signal ends it; returns the exit code."""
    return process.run(main)


async def read(
    topic: str,
    start: Start,
    *,
    chosen: MessageSelector,
    to_end: bool,
    nameservers: str,
    printer: MessagePrinter,
) -> None:
    """Reads all queues of a topic in parallel and commits nothing."""
    async with PullConsumer(READER, nameservers=nameservers, config=_reading()) as consumer:
        queues = await consumer.queues(topic)
        begins = [await _begin(consumer, queue, start) for queue in queues]
        ends = [await consumer.max_offset(queue) if to_end else None for queue in queues]
        readers = {
            asyncio.create_task(
                _follow(consumer, queue, begin, end=end, chosen=chosen, printer=printer),
                name=str(queue),
            )
            for queue, begin, end in zip(queues, begins, ends, strict=True)
        }
        try:
            reading = readers
            while reading and not printer.is_full:
                ended, reading = await asyncio.wait(reading, return_when=asyncio.FIRST_COMPLETED)
                for task in ended:
                    task.result()
        finally:
            for task in readers:
                task.cancel()
            await asyncio.gather(*readers, return_exceptions=True)


def _reading() -> PullConfig:
    return PullConfig(hold_ms=5_000, pull_timeout_ms=10_000, **loading.credentials())


async def _begin(consumer: PullConsumer, queue: QueueId, start: Start) -> int:
    if start == "first":
        return await consumer.min_offset(queue)
    if start == "last":
        return await consumer.max_offset(queue)
    return await consumer.offset_at(queue, start)


async def _follow(
    consumer: PullConsumer,
    queue: QueueId,
    offset: int,
    *,
    end: int | None,
    chosen: MessageSelector,
    printer: MessagePrinter,
) -> None:
    """Reads one queue from an offset to `end`, or for ever. Retries while a broker is away."""
    waits = pauses(0.2, 5.0)
    while not printer.is_full and (end is None or offset < end):
        try:
            pulled = await consumer.pull_blocking(queue, offset, **chosen)
        except TransportError as error:
            logger.warning("%s: %s", queue, error)
            await asyncio.sleep(next(waits))
            continue
        waits = pauses(0.2, 5.0)
        if pulled.status is PullStatus.NO_NEW and end is not None:
            return
        for message in pulled.messages:
            if end is None or message.queue_offset < end:
                await printer.take(message)
        offset = pulled.next_offset


async def join(
    topic: str,
    start: Start,
    *,
    chosen: MessageSelector,
    group: str,
    nameservers: str,
    printer: MessagePrinter,
    mode: Mode = "pull",
) -> None:
    """Consumes as a member of a group. A message that was shown counts as consumed.

    Args:
        mode: as for `PushConsumer`.

    Raises:
        RouteNotFound: there is no such topic. Without this check a member would wait for ever if
            the name is misspelt.
        ReplyError: access control refuses it.
    """
    config = ConsumerConfig(**loading.credentials())
    async with PullConsumer(READER, nameservers=nameservers, config=_reading()) as reader:
        await reader.queues(topic)
    consumer = PushConsumer(group, nameservers=nameservers, config=config, start=start, mode=mode)
    async with consumer:
        consumer.subscribe(topic, **chosen)
        async with contextlib.aclosing(aiter(consumer)) as messages:
            while not printer.is_full:
                await printer.take(await _next(consumer, messages))
            # The next `anext` marks the last message as consumed; its own message is put back.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(0):
                    await anext(messages)


async def _next(consumer: PushConsumer, messages: AsyncIterator[StoredMessage]) -> StoredMessage:
    """The next message; an error when access control refuses the group, for which a consumer of a
    program would go on waiting."""
    waiting = asyncio.ensure_future(anext(messages))
    try:
        while not (await asyncio.wait([waiting], timeout=_LOOK_SECONDS))[0]:
            if (refusal := consumer.refusal) is not None:
                raise refusal
        return waiting.result()
    finally:
        waiting.cancel()
        await asyncio.wait([waiting])


def show_line(message: StoredMessage, decoded: DecodedBody | None = None) -> None:
    """Prints a message as one line of text."""
    marks = [f"[{message.tag}]"] if message.tag else []
    marks += [f"key={key}" for key in message.keys]
    text = _text(message.body)
    body = f"({len(message.body)} bytes that are not text)" if text is None else text
    if decoded is not None:
        body = decoded.text or f"({decoded.problem}) {body}"
    where = f"{message.queue} {message.queue_offset}"
    typer.echo(" ".join([moment(message.stored_ms), where, *marks, _one_line(body)]))


def show_json(message: StoredMessage, decoded: DecodedBody | None = None) -> None:
    """Prints a message as one line of JSON; a body that is not text is in base64.

    A decoded body is `value`; one that does not fit is there as it is, beside `value_error`.
    """
    render.json(
        {
            "topic": message.topic,
            "broker": message.queue.broker,
            "queue": message.queue.number,
            "queue_offset": message.queue_offset,
            "log_offset": message.log_offset,
            "message_id": message.properties.get("UNIQ_KEY"),
            "tag": message.tag,
            "keys": message.keys,
            "properties": message.properties,
            "born_ms": message.born_ms,
            "stored_ms": message.stored_ms,
            "reconsume_times": message.reconsume_times,
            **(body_of(message) if decoded is None else _value_of(message, decoded)),
        }
    )


def _value_of(message: StoredMessage, decoded: DecodedBody) -> dict[str, Any]:
    if decoded.text is None:
        return {"value_error": decoded.problem, **body_of(message)}
    return {"value": msgspec.Raw(decoded.text.encode())}


def body_of(message: StoredMessage) -> dict[str, str]:
    """A body for JSON: as text, or in base64 if it is not text."""
    text = _text(message.body)
    if text is None:
        return {"body_base64": base64.b64encode(message.body).decode()}
    return {"body": text}


def show_raw(message: StoredMessage, decoded: DecodedBody | None = None) -> None:
    """Prints the body unchanged, or decoded if it fits, and a line end."""
    sys.stdout.flush()
    body = message.body if decoded is None or decoded.text is None else decoded.text.encode()
    out = getattr(sys.stdout, "buffer", None)
    if out is None:
        typer.echo(body.decode("utf-8", "replace"))
        return
    out.write(body + b"\n")
    out.flush()


def _text(body: bytes) -> str | None:
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text


def _one_line(text: str) -> str:
    """Escapes line ends and terminal control characters."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
