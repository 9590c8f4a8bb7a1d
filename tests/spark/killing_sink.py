"""A stream into a topic whose driver, workers and brokers are killed: each row must be there once.

    python -m tests.spark.killing_sink --kills 20 --seed 7

A process with Spark copies the topic `orders` to `copies` with `transactionBrokers`, a few hundred
messages at a time, through a shuffle that gives the rows another order and other tasks each time.
All of it is killed at random moments, or its Python workers, or a broker of two, in turn. Then the
copies are compared with what was sent: nothing may be missing, nothing twice.
"""

from __future__ import annotations

import argparse
import logging
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any, Self

from sprocket.client.blocking import Producer, PullConsumer
from sprocket.message.message import Message
from tests.compat.javaland import free_broker_port, free_port
from tests.spark.killing import Life

log = logging.getLogger(__name__)

#: The first one runs the name server too.
BROKERS = ("broker-a", "broker-b")


def copy(names: str, folder: str) -> None:
    """The process that is killed: copies what there is, however often its workers die."""
    import sprocket.spark

    quick = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
    spark = sprocket.spark.session("copy", "local[2,4]", **quick)
    while True:
        reader: Any = spark.readStream.format("rocketmq").schema("body string")
        reader = reader.option("namesrvAddr", names).option("subscribe", "orders")
        reader = reader.option("startingOffsets", "earliest").option("maxOffsetsPerTrigger", 300)
        rows = reader.load().repartition(3)
        writer = rows.writeStream.format("rocketmq").option("namesrvAddr", names)
        writer = writer.option("topic", "copies").option("transactionBrokers", ",".join(BROKERS))
        writer = writer.option("batchMaxRecords", 40)
        writer = writer.option("checkpointLocation", f"{folder}/checkpoint")
        try:
            writer.trigger(availableNow=True).start().awaitTermination()
        except Exception as error:  # a worker or the broker was killed: it begins again there
            sys.stderr.write(f"the query failed and is started again: {error}\n")
            time.sleep(1)
            continue
        spark.stop()
        return


class BrokerProcesses:
    """A name server and two brokers that can be killed, always at the same ports."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        nameserver, *ports = free_port(), free_broker_port(), free_broker_port()
        self.names = f"127.0.0.1:{nameserver}"
        first = ["standalone", "--nameserver-port", str(nameserver), "--grpc-port", "off"]
        second = ["broker", "--nameserver", self.names, "--name", BROKERS[1], "--host", "127.0.0.1"]
        self._commands = {
            BROKERS[0]: [*first, "--broker-port", str(ports[0])],
            BROKERS[1]: [*second, "--port", str(ports[1])],
        }
        self._processes: dict[str, subprocess.Popen[str]] = {}

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        for name in list(self._processes):
            self.kill(name)

    def start(self) -> None:
        """Starts those that do not run; returns when they can be used."""
        for name, words in self._commands.items():
            if name not in self._processes:
                self._start(name, words)

    def _start(self, name: str, words: list[str]) -> None:
        store = ["--store", str(self._folder / name), "--set", "store.log_file_bytes=8388608"]
        command = [sys.executable, "-m", "sprocket", *words, *store]
        errors = (self._folder / "broker.log").open("a")
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)
        self._processes[name] = process
        assert process.stdout is not None
        if not process.stdout.readline():
            raise RuntimeError((self._folder / "broker.log").read_text()[-3000:])

    def kill(self, name: str) -> None:
        """SIGKILL."""
        process = self._processes.pop(name)
        process.kill()
        process.wait()

    def create(self, topic: str) -> None:
        """Creates a topic at both brokers."""
        command = [sys.executable, "-m", "sprocket", "topic", "create", topic, "-n", self.names]
        subprocess.run([*command, "--queues", "4", "--timeout", "60"], check=True)

    def send(self, bodies: list[str]) -> None:
        """Sends a message to `orders` for each body."""
        with Producer("p", nameservers=self.names) as producer:
            for first in range(0, len(bodies), 100):
                some = [Message("orders", body.encode()) for body in bodies[first : first + 100]]
                producer.send_batch(some)

    def copies(self) -> Counter[str]:
        """How often each body is in `copies`."""
        found: Counter[str] = Counter()
        with PullConsumer("reader", nameservers=self.names) as consumer:
            for queue in consumer.queues("copies"):
                at, end = 0, consumer.max_offset(queue)
                while at < end:
                    pulled = consumer.pull(queue, at)
                    found.update(message.body.decode() for message in pulled.messages)
                    at = pulled.next_offset
        return found


def play(folder: Path, *, kills: int, seed: int, messages: int = 1800) -> Counter[str]:
    """Lets it live, kills it, and compares in the end; returns what was killed how often."""
    chance = random.Random(seed)
    killed: Counter[str] = Counter()
    bodies: list[str] = []

    def send(node: BrokerProcesses, count: int) -> None:
        some = [f"message {len(bodies) + n}" for n in range(count)]
        node.send(some)
        bodies.extend(some)

    def life(node: BrokerProcesses) -> Life:
        return Life(node.names, folder, module="tests.spark.killing_sink", name="--copy")

    with BrokerProcesses(folder) as node:
        node.create("copies")
        send(node, messages)
        for number in range(kills):
            one = life(node)
            try:
                goes_on = one.wait_for(1 + chance.randrange(2))
                send(node, 300)
                time.sleep(chance.random() * 0.7)
                if goes_on and number % 3 == 1:
                    killed["workers"] += one.kill_workers()
                    one.wait_for(1)
                if goes_on and number % 3 == 2:
                    node.kill(chance.choice(BROKERS))
                    node.start()
                    killed["broker"] += 1
                    one.wait_for(1)
            finally:
                one.kill()
                killed["driver"] += 1
        send(node, 1200)  # some micro-batches, in which all is at work
        last = life(node)
        try:
            last.wait_for(1)
            killed["workers"] += last.kill_workers()
            last.wait_for(1)
            node.kill(chance.choice(BROKERS))
            node.start()
            killed["broker"] += 1
            last.finish(900)
        finally:
            last.kill()
        check(node.copies(), bodies)
    return killed


def check(found: Counter[str], bodies: list[str]) -> None:
    """Raises AssertionError unless each body is there once."""
    twice = [body for body, count in found.items() if count > 1]
    assert not twice, f"{len(twice)} rows are there twice, such as {twice[0]}"
    missing = set(bodies) - found.keys()
    assert not missing, f"{len(missing)} of {len(bodies)} rows are missing, such as {min(missing)}"
    assert len(found) == len(bodies)


def main() -> None:
    """Runs as a command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--copy", nargs=2, metavar=("NAMES", "FOLDER"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    if given.copy:
        copy(*given.copy)
        return
    with tempfile.TemporaryDirectory() as folder:
        killed = play(Path(folder), kills=given.kills, seed=given.seed)
    sys.stdout.write(f"after {dict(killed)} each row is there once\n")


if __name__ == "__main__":
    main()
