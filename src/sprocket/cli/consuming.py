"""What `sprocket consume` does: reads queues by itself, or joins a group; prints what comes."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import logging
import os
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, Literal

import typer

from sprocket.base.backoff import pauses
from sprocket.base.errors import TransportError, UsageError
from sprocket.cli import loading, render
from sprocket.cli.times import moment
from sprocket.client.config import ConsumerConfig, PullConfig
from sprocket.client.pull_consumer import PullConsumer
from sprocket.client.push_consumer import PushConsumer
from sprocket.clientcore.replies import PullStatus
from sprocket.filter.choice import Choice, filter_of
from sprocket.filter.python import PythonFilter
from sprocket.message.message import StoredMessage
from sprocket.message.queue import QueueId
from sprocket.runtime import process

logger = logging.getLogger(__name__)

#: The group that reading without a group is done in; it commits nothing.
READER = "sprocket-cli"

Start = Literal["first", "last"] | int


class Taken:
    """Shows messages, up to a number of them."""

    def __init__(self, show: Callable[[StoredMessage], None], count_max: int | None) -> None:
        self._show = show
        self._count_max = count_max
        self._count = 0

    @property
    def is_full(self) -> bool:
        """Whether no more are wanted."""
        return self._count_max is not None and self._count >= self._count_max

    def take(self, message: StoredMessage) -> None:
        """Shows one more, if it is wanted."""
        if not self.is_full:
            self._count += 1
            self._show(message)


def chosen_by(tags: str, sql: str | None, code: str | None) -> Choice:
    """Which messages a user asks for, checked.

    Args:
        code: a file of Python, the function's name behind a colon if the file has another; or the
            name of a filter that was uploaded.

    Raises:
        UsageError: it cannot be read, or several are given.
    """
    choice: Choice = {"tags": tags, "sql": sql, "code": None if code is None else _filter_in(code)}
    filter_of(**choice)
    return choice


def _filter_in(text: str) -> PythonFilter:
    path, _, name = text.partition(":")
    if not path.endswith(".py"):
        return PythonFilter(None, text)
    try:
        source = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"--code {path}: {error}") from None
    secret = os.environ.get("SPROCKET_FILTER_SECRET")
    return PythonFilter(source, name or Path(path).stem, secret=secret)


def run(main: Coroutine[Any, Any, None]) -> int:
    """Runs `read` or `join` until it ends or a signal ends it; the exit code."""
    return process.run(main)


async def read(
    topic: str, start: Start, *, chosen: Choice, to_end: bool, nameservers: str, taken: Taken
) -> None:
    """Reads all queues of a topic side by side and commits nothing."""
    async with PullConsumer(READER, nameservers=nameservers, config=_reading()) as consumer:
        queues = await consumer.queues(topic)
        begins = [await _begin(consumer, queue, start) for queue in queues]
        ends = [await consumer.max_offset(queue) if to_end else None for queue in queues]
        readers = {
            asyncio.create_task(
                _follow(consumer, queue, begin, end=end, chosen=chosen, taken=taken),
                name=str(queue),
            )
            for queue, begin, end in zip(queues, begins, ends, strict=True)
        }
        try:
            reading = readers
            while reading and not taken.is_full:
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
    chosen: Choice,
    taken: Taken,
) -> None:
    """Reads one queue from an offset to `end`, or for ever; goes on when a broker comes back."""
    waits = pauses(0.2, 5.0)
    while not taken.is_full and (end is None or offset < end):
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
                taken.take(message)
        offset = pulled.next_offset


async def join(
    topic: str, start: Start, *, chosen: Choice, group: str, nameservers: str, taken: Taken
) -> None:
    """Consumes as a member of a group; what was shown counts as consumed.

    Raises:
        RouteNotFound: there is no such topic: a member would wait for one that is misspelt.
    """
    config = ConsumerConfig(**loading.credentials())
    async with PullConsumer(READER, nameservers=nameservers, config=_reading()) as reader:
        await reader.queues(topic)
    async with PushConsumer(group, nameservers=nameservers, config=config, start=start) as consumer:
        consumer.subscribe(topic, **chosen)
        async with contextlib.aclosing(aiter(consumer)) as messages:
            while not taken.is_full:
                taken.take(await anext(messages))
            # Asking for one more says that the last one is consumed; that one more is put back.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(0):
                    await anext(messages)


def show_line(message: StoredMessage) -> None:
    """One line for people."""
    marks = [f"[{message.tag}]"] if message.tag else []
    marks += [f"key={key}" for key in message.keys]
    text = _text(message.body)
    body = f"({len(message.body)} bytes that are not text)" if text is None else text
    where = f"{message.queue} {message.queue_offset}"
    typer.echo(" ".join([moment(message.stored_ms), where, *marks, _one_line(body)]))


def show_json(message: StoredMessage) -> None:
    """One line of JSON; a body that is not text as base64."""
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
            **body_of(message),
        }
    )


def body_of(message: StoredMessage) -> dict[str, str]:
    """A body for programs: as text, or as base64 if it is none."""
    text = _text(message.body)
    if text is None:
        return {"body_base64": base64.b64encode(message.body).decode()}
    return {"body": text}


def show_raw(message: StoredMessage) -> None:
    """The body as it is, and a line end."""
    sys.stdout.flush()
    out = getattr(sys.stdout, "buffer", None)
    if out is None:
        typer.echo(message.body.decode("utf-8", "replace"))
        return
    out.write(message.body + b"\n")
    out.flush()


def _text(body: bytes) -> str | None:
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text


def _one_line(text: str) -> str:
    """Without line ends and without what would steer a terminal."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
