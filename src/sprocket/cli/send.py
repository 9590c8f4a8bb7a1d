"""`sprocket send`: messages from an argument, a file, or the lines of standard input."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO

import typer

from sprocket.base.errors import UsageError
from sprocket.cli import render
from sprocket.cli.options import NAMESERVER, Json, NameServers, Timeout, Topic

if TYPE_CHECKING:
    from sprocket.client.producer import Producer, Sent
    from sprocket.message.message import Message

#: Sends in flight at the same time.
_WINDOW = 256
_READ_BYTES = 1 << 16
#: A longer line is no message that a broker takes.
_LINE_BYTES_MAX = 64 << 20

EXAMPLES = (
    'sprocket send orders "one coffee" --tag new --key o-1 --property shop=7',
    "sprocket send photos --file cup.jpg",
    "sprocket send orders --tag new < lines.txt",
)


def send(
    topic: Topic,
    body: Annotated[
        str | None, typer.Argument(metavar="[BODY]", help="Text to send.", show_default=False)
    ] = None,
    file: Annotated[
        Path | None, typer.Option("--file", "-f", metavar="FILE", help="Send a file's content.")
    ] = None,
    tag: Annotated[
        str | None, typer.Option("--tag", "-t", help="Word by which subscribers choose.")
    ] = None,
    keys: Annotated[
        list[str] | None,
        typer.Option("--key", "-k", help="Word by which it is found; may be given again."),
    ] = None,
    properties: Annotated[
        list[str] | None,
        typer.Option("--property", "-p", metavar="NAME=VALUE", help="May be given again."),
    ] = None,
    delay_level: Annotated[
        int, typer.Option("--delay-level", min=0, max=18, help="1 (1 s) to 18 (2 h); 0 at once.")
    ] = 0,
    group: Annotated[str, typer.Option("--group", "-g", help="Producer group.")] = "sprocket-cli",
    nameserver: NameServers = NAMESERVER,
    as_json: Json = False,
    timeout: Timeout = 5.0,
) -> None:
    """Sends messages: BODY, a file, or each line of standard input."""
    from sprocket.client.config import ProducerConfig
    from sprocket.client.producer import Producer
    from sprocket.message.message import Message

    named = dict(map(_pair, properties or ()))

    def message(content: bytes) -> Message:
        return Message(
            topic, content, tag=tag, keys=keys or (), properties=named, delay_level=delay_level
        )

    async def main() -> None:
        config = ProducerConfig(send_timeout_ms=int(timeout * 1000))
        async with Producer(group, nameservers=nameserver, config=config) as producer:
            if body is not None or file is not None:
                sent = await producer.send(message(_content(body, file)))
                _show(sent, as_json=as_json)
                return
            await _send_lines(producer, message, as_json=as_json)

    asyncio.run(main())


def _content(body: str | None, file: Path | None) -> bytes:
    if body is not None and file is not None:
        raise UsageError("give BODY or --file, not both")
    return file.read_bytes() if file is not None else (body or "").encode("utf-8", "replace")


def _pair(text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not separator:
        raise UsageError(f"--property takes NAME=VALUE, not {text!r}")
    return name, value


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
    if as_json:
        render.json(facts)
        return
    typer.echo(f"{sent.status.name} {sent.queue} offset {sent.queue_offset} id {sent.message_id}")


async def _send_lines(
    producer: Producer, message: Callable[[bytes], Message], *, as_json: bool
) -> None:
    """Sends each line, many at a time; the first failure ends it, when the others are through."""
    if sys.stdin.isatty():
        typer.echo("one message a line; Ctrl-D ends", err=True)
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
                running.add(asyncio.create_task(producer.send(message(line))))
                if len(running) >= _WINDOW:
                    done, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                    settle(done)
        finally:
            if running:
                settle((await asyncio.wait(running))[0])
            if not as_json:
                typer.echo(f"sent {count} messages")


async def _lines(source: BinaryIO) -> AsyncIterator[bytes]:
    """The lines of a stream as they come, without their ends; empty ones are left out.

    A thread reads, so that the loop goes on while nothing comes; it ends with the process.
    """
    loop = asyncio.get_running_loop()
    chunks: asyncio.Queue[bytes] = asyncio.Queue(maxsize=4)

    def read() -> None:
        for chunk in _chunks(source):
            try:
                asyncio.run_coroutine_threadsafe(chunks.put(chunk), loop).result()
            except RuntimeError:  # the loop is closed: nobody wants more
                return

    threading.Thread(target=read, daemon=True, name="standard input").start()
    rest = b""
    while chunk := await chunks.get():
        *lines, rest = (rest + chunk).split(b"\n")
        if len(rest) > _LINE_BYTES_MAX:
            raise UsageError(f"a line has more than {_LINE_BYTES_MAX} bytes")
        for line in lines:
            if stripped := line.rstrip(b"\r"):
                yield stripped
    if rest:
        yield rest


def _chunks(source: BinaryIO) -> Iterator[bytes]:
    """What can be read at once, again and again; at the end an empty chunk."""
    read = getattr(source, "read1", source.read)
    while chunk := read(_READ_BYTES):
        yield chunk
    yield b""
