"""The brokers that are measured, each as a process of its own with an empty store."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bench.load import drive, frame
from sprocket.protocol.signing import Signer
from tests.compat import javaland


@dataclass(frozen=True, slots=True)
class Node:
    """A running broker: where it listens and which process it is."""

    name: str
    nameserver_port: int
    broker_port: int
    pid: int


def free_port() -> int:
    """A port nobody listens on now. Ports next to it are left to brokers that want several."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def sprocket_node(
    folder: Path, *options: str, name: str = "sprocket", python: str = sys.executable
) -> Iterator[Node]:
    """A standalone Sprocket node with its store in `folder`."""
    ports = free_port(), free_port()
    command = [
        python, "-m", "sprocket", "standalone",
        "--store", str(folder / "sprocket"),
        "--nameserver-port", str(ports[0]), "--broker-port", str(ports[1]), "--grpc-port", "off",
        *options,
    ]  # fmt: skip
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            if not process.stdout.readline():
                raise RuntimeError(f"the node did not start: {' '.join(command)}")
            yield Node(name, *ports, process.pid)
        finally:
            process.terminate()
            process.wait(30)


@contextlib.contextmanager
def java_node(folder: Path, **settings: str) -> Iterator[Node]:
    """Java's name server and broker, with file sizes of production and a 1 GiB heap."""
    folder = folder / "java"
    sizes = {"mappedFileSizeCommitLog": 1 << 30, "mappedFileSizeConsumeQueue": 6_000_000}
    with (
        javaland.JavaNameServer(folder) as nameserver,
        javaland.JavaBroker(
            folder,
            nameserver.address,
            settings={**sizes, **settings},
            jvm=("-Xmx1g", "-XX:-UseSerialGC", "-XX:+UseG1GC", "-XX:TieredStopAtLevel=4"),
        ) as broker,
    ):
        yield Node("java", nameserver.port, broker.port, broker.pid)


def java_missing() -> str | None:
    """Why Java cannot be measured here, or None if it can."""
    return javaland.available()


@contextlib.contextmanager
def both(folder: Path) -> Iterator[dict[str, Node]]:
    """Sprocket, and Java's beside it where it can be had."""
    with contextlib.ExitStack() as stack:
        nodes = {"sprocket": stack.enter_context(sprocket_node(folder))}
        if java_missing() is None:
            nodes["java"] = stack.enter_context(java_node(folder))
        yield nodes


def create_topic(node: Node, topic: str, queues: int, signer: Signer | None = None) -> None:
    """Makes a topic with `queues` queues, as an operator would; a closed broker needs a signer."""
    fields = {
        "topic": topic,
        "defaultTopic": "TBW102",
        "readQueueNums": str(queues),
        "writeQueueNums": str(queues),
        "perm": "6",
        "topicFilterType": "SINGLE_TAG",
        "topicSysFlag": "0",
        "order": "false",
    }
    if signer is not None:
        fields = signer.signed(fields)
    seen = drive(node.broker_port, [frame(17, fields)], total=1)
    if seen.refused:
        raise RuntimeError(f"{node.name} refused the topic: {seen.first_refusal!r}")
    time.sleep(0.5)
