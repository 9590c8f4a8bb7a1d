"""The bare gRPC engine beside grpcio's: an echo of 222 B, and a stream of 32 such messages.

Both run in a process of their own. The load is h2load (of nghttp2), with the headers that a client
of RocketMQ sends; grpcio and h2load must be there.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from rich.console import Console

from bench.brokers import free_port
from bench.figures import CPU, RATE, Report, Sample, cpu_seconds, interleave
from sprocket.proxy.http2.call_form import Streaming, Unary
from sprocket.proxy.http2.calls import GrpcCall
from sprocket.proxy.http2.server import GrpcServer
from sprocket.runtime import process

UNARY, STREAM = "/bench.Echo/Unary", "/bench.Echo/Stream"
_MESSAGES = 32
_BODY = b"x" * 222
_HEADERS = (
    "content-type: application/grpc", "te: trailers", "user-agent: grpc-java-netty/1.53.0",
    "grpc-timeout: 2999m", "x-mq-client-id: host@1234@0@abc", "x-mq-language: JAVA",
    "x-mq-protocol: v2", "x-mq-client-version: 5.0.7",
)  # fmt: skip


async def ours(port: int) -> None:
    """Our engine with an echo."""

    async def stream(call: GrpcCall) -> None:
        request = await call.receive() or b""
        for _ in range(_MESSAGES):
            call.send(request)
            await call.drained()

    methods = {UNARY: Unary(lambda call, request: request), STREAM: Streaming(stream)}
    async with GrpcServer(methods, port=port) as server:
        print(server.address, flush=True)  # noqa: T201 - for the process that started this one
        await asyncio.Event().wait()


async def theirs(port: int) -> None:
    """The same with grpcio."""
    import grpc

    async def unary(request: bytes, _: Any) -> bytes:
        return request

    async def stream(request: bytes, _: Any) -> Any:
        for _ in range(_MESSAGES):
            yield request

    methods = {
        "Unary": grpc.unary_unary_rpc_method_handler(unary),
        "Stream": grpc.unary_stream_rpc_method_handler(stream),
    }
    server = grpc.aio.server()
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("bench.Echo", methods),))
    server.add_insecure_port(f"127.0.0.1:{port}")
    await server.start()
    print("started", flush=True)  # noqa: T201 - for the process that started this one
    await server.wait_for_termination()


@contextlib.contextmanager
def serving(name: str) -> Iterator[tuple[int, int]]:
    """A server in a process of its own: its port and the process."""
    port = free_port()
    command = [sys.executable, "-m", "bench.engine", name, str(port)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as started:
        try:
            assert started.stdout is not None
            if not started.stdout.readline():
                raise RuntimeError(f"{name} did not start")
            yield port, started.pid
        finally:
            started.kill()


def measured(
    port: int, pid: int, path: str, body: Path, *, total: int, in_flight: int
) -> Callable[[], Sample]:
    headers = [part for each in _HEADERS for part in ("-H", each)]
    command = [
        "h2load", "-n", str(total), "-c", "1", "-m", str(in_flight), "-d", str(body), *headers,
        f"http://127.0.0.1:{port}{path}",
    ]  # fmt: skip

    def measure() -> Sample:
        before = cpu_seconds(pid)
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        found = re.search(r"finished in .*?, ([\d.]+) req/s", said)
        if found is None or f"{total} succeeded" not in said:
            raise RuntimeError(f"calls failed: {said}")
        return {RATE: float(found[1]), CPU: (cpu_seconds(pid) - before) / total * 1e6}

    return measure


def main(console: Console, folder: Path, *, quick: bool, rounds: int) -> None:
    """Prints the table."""
    if shutil.which("h2load") is None:
        console.print("without this bench: it needs h2load (package nghttp2-client)")
        return
    body = folder / "body"
    body.write_bytes(struct.pack(">BI", 0, len(_BODY)) + _BODY)
    scale = 1 if quick else 4
    with serving("ours") as our, serving("theirs") as their:
        report = Report("gRPC engine, a call", ["ours", "grpcio"])
        for case, path, total, in_flight in (
            ("unary, 64 in flight", UNARY, 10_000, 64),
            ("unary, 1 in flight", UNARY, 2_000, 1),
            (f"stream of {_MESSAGES}, 8 in flight", STREAM, 1_000, 8),
        ):
            runs = {
                name: measured(*side, path, body, total=total * scale, in_flight=in_flight)
                for name, side in (("ours", our), ("grpcio", their))
            }
            report.add(case, interleave(runs, rounds=rounds))
        report.show(console)


if __name__ == "__main__":
    process.run({"ours": ours, "theirs": theirs}[sys.argv[1]](int(sys.argv[2])))
