"""What `sprocket send` does: sends one message, or one for each line of standard input."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any, BinaryIO, TypedDict

import typer
from msgspec import structs

from sprocket.base.errors import UsageError
from sprocket.cli import loading, render
from sprocket.client.config import ProducerConfig
from sprocket.client.producer import Producer, Sent
from sprocket.message.message import Message
from sprocket.message.queue import QueueId
from sprocket.runtime import process

#: Sends in flight at the same time.
_WINDOW = 256
_READ_BYTES = 1 << 16
#: Most chunks of standard input that are read but not sent yet.
_CHUNKS_MAX = 4
#: Brokers refuse longer messages by default. A file may be longer.
_LINE_BYTES_MAX = 8 << 20


class SendOrder(TypedDict):
    """What decides the queue: a key, or the queue itself; None for neither."""

    key: str | None
    queue: QueueId | None


def run(
    draft: Message,
    *,
    is_whole: bool,
    order: SendOrder,
    group: str,
    nameservers: str,
    timeout: float,
    as_json: bool,
) -> int:
    """Sends `draft` if it is whole, otherwise one copy of it for each line of standard input.

    Returns:
        The exit code.
    """

    async def main() -> None:
        config = ProducerConfig(send_timeout_ms=int(timeout * 1000), **loading.credentials())
        async with Producer(group, nameservers=nameservers, config=config) as producer:
            if is_whole:
                _show(await producer.send(draft, **order), as_json=as_json)
            else:
                await _send_lines(producer, draft, order, as_json=as_json)

    return process.run(main())


def _show(sent: Sent, *, as_json: bool) -> None:
    facts: dict[str, Any] = {
        "topic": sent.queue.topic,
        "broker": sent.queue.broker,
        "queue": sent.queue.number,
        "queue_offset": sent.queue_offset,
        "message_id": sent.message_id,
        "offset_id": sent.offset_id,
        "status": sent.status.name,
    }
    if sent.recall_handle:
        facts["recall_handle"] = sent.recall_handle
    if as_json:
        render.json(facts)
        return
    typer.echo(f"{sent.status.name} {sent.queue} offset {sent.queue_offset} id {sent.message_id}")
    if sent.recall_handle:
        typer.echo(f"recall it with: sprocket message recall {sent.recall_handle}")


async def _send_lines(
    producer: Producer, draft: Message, order: SendOrder, *, as_json: bool
) -> None:
    """Sends each line, many at a time. After the first failure it waits for the others and ends."""
    if sys.stdin.isatty():
        typer.echo("type one message a line; Ctrl-D ends", err=True)
    count = 0
    running: set[asyncio.Task[Sent]] = set()
    with render.progress("sending") as advance:

        def settle(done: set[asyncio.Task[Sent]]) -> None:
            nonlocal count
            for task in done:
                sent = task.result()
                count += 1
                advance(1)
                if as_json:
                    _show(sent, as_json=True)

        try:
            async for line in _lines(sys.stdin.buffer):
                copy = structs.replace(draft, body=line)
                running.add(asyncio.create_task(producer.send(copy, **order)))
                if len(running) >= _WINDOW:
                    done, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                    settle(done)
        finally:
            if running:
                settle((await asyncio.wait(running))[0])
            if not as_json:
                typer.echo(f"sent {count} messages")


async def _lines(source: BinaryIO) -> AsyncIterator[bytes]:
    """The lines of a stream as they come, without line ends; empty lines are left out.

    A thread reads, so that the event loop is not blocked; it ends with the process.
    """
    loop = asyncio.get_running_loop()
    chunks: asyncio.Queue[bytes] = asyncio.Queue()
    room = threading.Semaphore(_CHUNKS_MAX)

    def read() -> None:
        # The event loop or the stream is closed, because the command ends.
        with contextlib.suppress(RuntimeError, ValueError):
            for chunk in _chunks(source):
                room.acquire()
                loop.call_soon_threadsafe(chunks.put_nowait, chunk)

    threading.Thread(target=read, daemon=True, name="standard input").start()
    rest = b""
    while chunk := await chunks.get():
        room.release()
        *lines, rest = (rest + chunk).split(b"\n")
        if len(rest) > _LINE_BYTES_MAX:
            raise UsageError(f"a line has more than {_LINE_BYTES_MAX} bytes")
        for line in lines:
            if stripped := line.rstrip(b"\r"):
                yield stripped
    if rest:
        yield rest


def _chunks(source: BinaryIO) -> Iterator[bytes]:
    """The data as it can be read, in chunks; an empty chunk at the end."""
    read = getattr(source, "read1", source.read)
    while chunk := read(_READ_BYTES):
        yield chunk
    yield b""
