"""The two brokers that Spark reads from: ours, and Kafka 4.4 with one node."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import time
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bench.brokers import Node, free_port, sprocket_node

_PATIENCE_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Server:
    """A running broker.

    Attributes:
        kind: `sprocket` or `kafka`.
        address: what clients are given.
        node: the process and its ports.
        store: where ours keeps its files.
    """

    kind: str
    address: str
    node: Node
    store: str = ""


@contextlib.contextmanager
def sprocket(folder: Path) -> Iterator[Server]:
    """A standalone node."""
    with sprocket_node(folder) as node:
        address = f"127.0.0.1:{node.nameserver_port}"
        yield Server("sprocket", address, node, str(folder / "sprocket"))


@contextlib.contextmanager
def kafka(folder: Path, jars: Path) -> Iterator[Server]:
    """A Kafka broker that is its own controller, with a heap of 1 GiB."""
    port, controller = free_port(), free_port()
    properties = folder / "kafka.properties"
    properties.write_text(
        f"""process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
log.dirs={folder / "kafka"}
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
"""
    )
    java = ["java", "-Xmx1g", "-cp", str(jars / "*")]
    cluster = urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode().replace("-", "x")
    made = ["kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(properties)]
    subprocess.run([*java, *made, "--standalone"], check=True, capture_output=True)
    with (
        (folder / "kafka.log").open("w") as log,
        subprocess.Popen(
            [*java, "kafka.Kafka", str(properties)], stdout=log, stderr=log
        ) as process,
    ):
        try:
            _wait_for(port, process)
            yield Server("kafka", f"127.0.0.1:{port}", Node("kafka", 0, port, process.pid))
        finally:
            process.terminate()
            process.wait(30)


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + _PATIENCE_SECONDS
    while time.monotonic() < until and process.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.2)
    raise RuntimeError("the Kafka broker did not start; its log is kafka.log")
