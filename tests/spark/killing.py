"""A streaming archive that is killed again and again, and must equal its topic in the end.

    python -m tests.spark.killing --kills 20 --seed 7

A broker runs here, messages keep coming, and a process with Spark copies the topic to Parquet
files, a few hundred messages at a time. All of it is killed at random moments, or only the Python
workers that its Java has started, and it is started again. Then the files are compared with what
was sent: nothing may be missing, nothing twice.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import logging
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from tests.spark.node import Node

log = logging.getLogger(__name__)

#: How long one life of the archive may take until it shows a first micro-batch, seconds.
START_S = 240.0
COLUMNS = "queue_id int, queue_offset bigint, body string"


def archive(names: str, folder: str) -> None:
    """The process that is killed: copies what there is, however often its workers die."""
    import sprocket.spark

    quick = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
    spark = sprocket.spark.session("archive", "local[2,4]", **quick)
    while True:
        reader: Any = spark.readStream.format("rocketmq").schema(COLUMNS)
        reader = reader.option("namesrvAddr", names).option("subscribe", "orders")
        reader = reader.option("startingOffsets", "earliest").option("group", "archive")
        frame = reader.option("maxOffsetsPerTrigger", 300).option("minPartitions", 2).load()
        writer = frame.writeStream.option("checkpointLocation", f"{folder}/checkpoint")
        query = writer.trigger(availableNow=True).start(f"{folder}/archive")
        try:
            query.awaitTermination()
        except Exception as error:  # a worker was killed: the query begins again where it was
            sys.stderr.write(f"the query failed and is started again: {error}\n")
            continue
        spark.stop()
        return


class Life:
    """One life of the archive, or of another module's program, in a session of its own."""

    def __init__(
        self,
        names: str,
        folder: Path,
        *,
        module: str = "tests.spark.killing",
        name: str = "--archive",
    ) -> None:
        self._folder = folder
        self._before = self.batches()
        command = [sys.executable, "-m", module, name, names, str(folder)]
        self.log = folder / "archive.log"
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                command, stdout=log, stderr=log, start_new_session=True
            )

    def batches(self) -> int:
        """How many micro-batches are committed."""
        commits = self._folder / "checkpoint" / "commits"
        return sum(one.name.isdecimal() for one in commits.iterdir()) if commits.is_dir() else 0

    def wait_for(self, batches: int) -> bool:
        """Waits until so many more micro-batches are committed; False if it has ended."""
        end = time.monotonic() + START_S
        while self.batches() < self._before + batches:
            if self._process.poll() is not None:
                return False
            if time.monotonic() > end:
                said = self.log.read_text(errors="replace")[-3000:]
                raise TimeoutError(f"no more than {self.batches()} micro-batches: {said}")
            time.sleep(0.02)
        return True

    def kill(self) -> None:
        """SIGKILL to all of it: Python, Java and the workers."""
        for pid in _session(self._process.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.wait()

    def kill_workers(self) -> int:
        """SIGKILL to the Python processes that Java has started; how many."""
        workers = [pid for pid in _session(self._process.pid) if _is_worker(pid)]
        for pid in workers:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return len(workers)

    def finish(self, within_s: float) -> None:
        """Waits until it has copied everything."""
        if self._process.wait(within_s) != 0:
            raise AssertionError(self.log.read_text(errors="replace")[-3000:])


def _session(leader: int) -> list[int]:
    """The processes of a session, its leader first: workers have a process group of their own."""
    found = [leader]
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and int(entry.name) != leader:
            with contextlib.suppress(OSError):
                if os.getsid(int(entry.name)) == leader:
                    found.append(int(entry.name))
    return found


def _is_worker(pid: int) -> bool:
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
    return b"pyspark.daemon" in command or b"pyspark.sql" in command


def archived(folder: Path) -> Counter[tuple[int, int, str]]:
    """What the archive has, as Spark would read it: by the list of files that are committed."""
    log = folder / "archive" / "_spark_metadata"
    compacts = sorted(int(p.name.split(".")[0]) for p in log.glob("[0-9]*.compact"))
    first = compacts[-1] if compacts else -1
    entries = [log / f"{first}.compact"] if compacts else []
    entries += [p for p in log.iterdir() if p.name.isdecimal() and int(p.name) > first]
    found: Counter[tuple[int, int, str]] = Counter()
    for entry in entries:
        for line in entry.read_text().splitlines()[1:]:
            path = json.loads(line)["path"].removeprefix("file://")
            for row in pq.read_table(path).to_pylist():
                found[row["queue_id"], row["queue_offset"], row["body"]] += 1
    return found


def check(folder: Path, bodies: set[str]) -> None:
    """Raises AssertionError unless the archive has each body once."""
    found = archived(folder)
    twice = [row for row, count in found.items() if count > 1]
    assert not twice, f"{len(twice)} messages are there twice, such as {twice[0]}"
    assert len({row[:2] for row in found}) == len(found), "a place is there twice"
    here = Counter(row[2] for row in found)
    assert set(here) == bodies, f"{len(bodies - set(here))} of {len(bodies)} messages are missing"
    assert max(here.values(), default=1) == 1


def play(folder: Path, *, kills: int, seed: int, messages: int = 1800) -> int:
    """Lets it live, kills it, and compares in the end; returns how many workers were killed."""
    chance = random.Random(seed)
    workers = 0
    bodies: set[str] = set()

    def send(node: Node, count: int) -> None:
        some = [f"message {len(bodies) + n}" for n in range(count)]
        node.send("orders", (one.encode() for one in some))
        bodies.update(some)

    with Node(folder / "store") as node:
        send(node, messages)
        for number in range(kills):
            life = Life(node.names, folder)
            try:
                goes_on = life.wait_for(1 + chance.randrange(3))
                send(node, 300)
                time.sleep(chance.random() * 0.5)
                if goes_on and number % 2:
                    workers += life.kill_workers()
                    life.wait_for(1)
                log.info("life %d had %d micro-batches", number + 1, life.batches())
            finally:
                life.kill()
        send(node, 900)  # some micro-batches, in which workers are at work
        last = Life(node.names, folder)
        try:
            last.wait_for(1)
            workers += last.kill_workers()
            last.finish(600)
        finally:
            last.kill()
    check(folder, bodies)
    return workers


def main() -> None:
    """Runs as a command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--archive", nargs=2, metavar=("NAMES", "FOLDER"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    if given.archive:
        archive(*given.archive)
        return
    with tempfile.TemporaryDirectory() as folder:
        workers = play(Path(folder), kills=given.kills, seed=given.seed)
    sys.stdout.write(f"{given.kills} kills and {workers} workers later the archive is the topic\n")


if __name__ == "__main__":
    main()
