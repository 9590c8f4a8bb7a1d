"""What TLS costs: sends with 64 and with 1 in flight, and connections, beside plain ones.

Both kinds of connections go to the port of one node. The client runs in this process, so its own
processor time is that of the process.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

from rich.console import Console

from bench.brokers import Node, create_topic, sprocket_node
from bench.figures import CPU, RATE, Figure, Report, Sample, cpu_seconds, interleave
from sprocket.base.deadline import Deadline
from sprocket.protocol.requests.send import SendMessageV2
from sprocket.remoting.pool import Pool
from sprocket.remoting.tls.settings import ClientTls
from sprocket.runtime import process
from tests.certificates import Authority

TOPIC = "BenchTls"
CLIENT_CPU = Figure("client CPU", "µs/message", False)
_BODY = b"x" * 128


def sends(node: Node, *, tls: ClientTls | None, total: int, in_flight: int) -> Awaitable[None]:
    """Sends `total` messages over one connection."""
    address = f"127.0.0.1:{node.broker_port}"
    header = SendMessageV2(
        producer_group="p", topic=TOPIC, queue_id=0, properties="", born_timestamp=1
    )

    async def main() -> None:
        left = total
        async with Pool(tls=tls) as pool:

            async def worker() -> None:
                nonlocal left
                while left > 0:
                    left -= 1
                    deadline = Deadline.after(60)
                    await pool.ask(address, header, body=_BODY, deadline=deadline)

            await asyncio.gather(*(worker() for _ in range(in_flight)))

    return main()


def connections(node: Node, *, tls: ClientTls | None, total: int) -> Awaitable[None]:
    """Makes `total` connections, 8 at a time, and closes each again."""
    address = f"127.0.0.1:{node.broker_port}"

    async def main() -> None:
        left = total

        async def worker() -> None:
            nonlocal left
            while left > 0:
                left -= 1
                async with Pool(tls=tls) as pool:
                    await pool.peer(address, Deadline.after(60))

        await asyncio.gather(*(worker() for _ in range(8)))

    return main()


def measured(
    node: Node, total: int, work: Callable[..., Awaitable[None]], tls: ClientTls | None
) -> Callable[[], Sample]:
    """The figures of one run."""

    def measure() -> Sample:
        server, own, began = cpu_seconds(node.pid), time.process_time(), time.perf_counter()

        async def main() -> None:
            await work(tls=tls)

        process.run(main())
        return {
            CPU: (cpu_seconds(node.pid) - server) / total * 1e6,
            CLIENT_CPU: (time.process_time() - own) / total * 1e6,
            RATE: total / (time.perf_counter() - began),
        }

    return measure


def main(console: Console, folder: Path, *, quick: bool, rounds: int) -> None:
    """Prints the table."""
    authority = Authority(folder / "authority")
    report = Report("TLS beside plain connections", ["TLS", "plain"])
    kinds: dict[str, ClientTls | None] = {
        "TLS": ClientTls(authorities=authority.path), "plain": None,
    }  # fmt: skip
    scale = 1 if quick else 5
    for key, is_rsa in (("EC P-256", False), ("RSA 2048", True)):
        issued = authority.issue(key.replace(" ", "-"), is_rsa=is_rsa)
        options = (
            "--set", f"tls.certificate={issued.certificate}", "--set", f"tls.key={issued.key}",
        )  # fmt: skip
        with sprocket_node(folder / key, *options) as node:
            create_topic(node, TOPIC, 1)
            for in_flight, total in ((64, 20_000 * scale), (1, 2_000 * scale)):
                if is_rsa:
                    break  # the key counts for handshakes only
                work = partial(sends, node, total=total, in_flight=in_flight)
                runs = {name: measured(node, total, work, tls) for name, tls in kinds.items()}
                report.add(f"send 128 B, {in_flight} in flight", interleave(runs, rounds=rounds))
            total = 200 * scale
            making = partial(connections, node, total=total)
            runs = {name: measured(node, total, making, tls) for name, tls in kinds.items()}
            report.add(f"connection, {key}", interleave(runs, rounds=rounds))
    report.show(console)
