"""A Spark session in a process of its own, which runs the cases it is told.

It takes one command a line on standard input and answers with one line. It runs under the
interpreter of `ground.py`; whoever asks adds up the processor time of it and all its children.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.spark.connectors import CONNECTORS, Source

Json = dict[str, Any]
_PATIENCE_SECONDS = 120.0


class Worker:
    """The session, and what is running in it."""

    def __init__(self) -> None:
        self._spark: Any = None
        self._query: Any = None
        #: Several streams, and up to which of its batches each was told of.
        self._queries: dict[Any, int] = {}
        self._folder = Path(tempfile.mkdtemp(prefix="bench-spark-"))

    def start(self, *, master: str, jars: str) -> Json:
        """Makes the session; says what its start is made of, seconds."""
        began = time.perf_counter()
        from sprocket import spark

        imported = time.perf_counter()
        conf: dict[str, Any] = {
            "spark.driver.memory": "2g",
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.streaming.numRecentProgressUpdates": "10000",
        }
        if jars:
            conf["spark.jars"] = jars
        self._spark = spark.session("bench", master, **conf)
        self._spark.sparkContext.setLogLevel("ERROR")
        return {"import": imported - began, "session": time.perf_counter() - imported}

    def create_kafka_topic(self, *, source: Source, queues: int) -> Json:
        """Makes a topic in Kafka, which our own load generator cannot."""
        from confluent_kafka.admin import AdminClient, NewTopic

        admin = AdminClient({"bootstrap.servers": source.address})
        admin.create_topics([NewTopic(source.topic, queues, 1)])[source.topic].result()
        return {}

    def write(self, *, source: Source, rows: int, size: int, tasks: int) -> Json:
        """Rows into a topic, as a batch; seconds."""
        connector = CONNECTORS[source.kind]
        made = connector.rows(self._spark.range(0, rows, 1, tasks), size)
        writer = connector.writer(made, source).mode("append")
        return _timed(writer.save)

    def count(self, *, source: Source) -> Json:
        """How many rows a read gives: so that nothing fast is fast because it is empty."""
        return {"rows": CONNECTORS[source.kind].reader(self._spark.read, source).count()}

    def first(self, *, source: Source) -> Json:
        """Seconds until the first row is there."""
        frame = CONNECTORS[source.kind].reader(self._spark.read, source)
        return _timed(frame.first)

    def batch(self, *, source: Source, into: str) -> Json:
        """The whole topic into nothing (`noop`) or Parquet; seconds."""
        frame = CONNECTORS[source.kind].reader(self._spark.read, source)
        target = self._folder / "parquet"
        writer = frame.write.mode("overwrite").format(into)
        answer = _timed(lambda: writer.save(str(target)))
        shutil.rmtree(target, ignore_errors=True)
        return answer

    def stream(self, *, source: Source, into: str) -> Json:
        """What is there, as a stream in slices; seconds, and what each trigger took, ms."""
        frame = CONNECTORS[source.kind].reader(self._spark.readStream, source)
        place = Path(tempfile.mkdtemp(dir=self._folder))
        writer = frame.writeStream.format(into).trigger(availableNow=True)
        writer = writer.option("checkpointLocation", str(place / "checkpoint"))
        if into != "noop":
            writer = writer.option("path", str(place / "rows"))
        began = time.perf_counter()
        query = writer.start()
        query.awaitTermination()
        seconds = time.perf_counter() - began
        progress = _progress(query)
        shutil.rmtree(place)
        return {
            "seconds": seconds,
            "rows": sum(one["numInputRows"] for one in progress),
            "triggers": [
                one["durationMs"]["triggerExecution"] for one in progress if one["numInputRows"]
            ],
        }

    def plan(self, *, source: Source) -> Json:
        """Plans a read of the whole topic: seconds, and how many tasks it would have."""
        frame = CONNECTORS[source.kind].reader(self._spark.read, source)
        began = time.perf_counter()
        tasks = frame._jdf.queryExecution().toRdd().getNumPartitions()
        return {"seconds": time.perf_counter() - began, "tasks": tasks}

    def listen(self, *, source: Source) -> Json:
        """Begins a stream that notes arrivals, and waits until it is under way."""
        from bench.spark.arrivals import Arrivals

        self._spark.dataSource.register(Arrivals)
        frame = CONNECTORS[source.kind].reader(self._spark.readStream, source)
        place = Path(tempfile.mkdtemp(dir=self._folder))
        (place / "waits").mkdir()
        body = "body" if source.kind == "sprocket" else "value"
        writer = frame.select(body).writeStream.format("arrivals")
        writer = writer.option("folder", str(place / "waits"))
        self._query = writer.option("checkpointLocation", str(place / "checkpoint")).start()
        until = time.monotonic() + _PATIENCE_SECONDS
        while "Waiting for data" not in self._query.status["message"]:
            if self._query.exception() or time.monotonic() > until:
                raise RuntimeError(f"the stream did not start: {self._query.exception()}")
            time.sleep(0.1)
        return {"waits": str(place / "waits")}

    def heard(self, *, waits: str, count: int) -> Json:
        """Waits (ms) of `count` messages, once they have come. They are not told again."""
        from bench.spark.arrivals import take

        until = time.monotonic() + _PATIENCE_SECONDS
        found: list[float] = []
        while len(found := found + take(Path(waits))) < count:
            if self._query.exception() or time.monotonic() > until:
                raise RuntimeError(f"{len(found)} of {count} came: {self._query.exception()}")
            time.sleep(0.2)
        return {"waits": found}

    def hush(self) -> Json:
        """Ends the stream."""
        self._query.stop()
        return {}

    def begin_streams(self, *, source: Source, count: int) -> Json:
        """Begins streams of the same topic into nothing; waits until each has read something."""
        for _ in range(count):
            frame = CONNECTORS[source.kind].reader(self._spark.readStream, source)
            place = Path(tempfile.mkdtemp(dir=self._folder))
            writer = frame.writeStream.format("noop")
            self._queries[writer.option("checkpointLocation", str(place)).start()] = -1
        until = time.monotonic() + _PATIENCE_SECONDS
        for query in self._queries:
            while not any(one["numInputRows"] for one in _progress(query)):
                if query.exception() or time.monotonic() > until:
                    raise RuntimeError(f"a stream read nothing: {query.exception()}")
                time.sleep(0.1)
        self._told()
        return {}

    def watch_streams(self, *, seconds: int) -> Json:
        """The micro-batches of so many seconds: rows, and what each took, ms."""
        time.sleep(seconds)
        made = self._told()
        return {
            "streams": len(self._queries),
            "rows": [one["numInputRows"] for one in made],
            "triggers": [one["durationMs"]["triggerExecution"] for one in made],
        }

    def end_streams(self) -> Json:
        """Ends them."""
        for query in self._queries:
            query.stop()
        self._queries.clear()
        return {}

    def _told(self) -> list[Json]:
        """The micro-batches with rows that were not told of before."""
        made = []
        for query, last in self._queries.items():
            new = [one for one in _progress(query) if one["batchId"] > last]
            new = [one for one in new if one["numInputRows"]]
            if new:
                self._queries[query] = max(one["batchId"] for one in new)
            made += new
        return made


def _progress(query: Any) -> list[Json]:
    return [json.loads(one.json) for one in query.recentProgress]


def _timed(run: Callable[[], object]) -> Json:
    began = time.perf_counter()
    run()
    return {"seconds": time.perf_counter() - began}


def main() -> None:
    """Serves commands until standard input ends."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever else is printed goes where it disturbs nobody
    worker = Worker()
    for line in sys.stdin:
        asked = json.loads(line)
        args = asked["args"]
        if "source" in args:
            args["source"] = Source(*args["source"])
        try:
            answer = getattr(worker, asked["command"])(**args)
        except Exception:
            answer = {"error": traceback.format_exc()}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
    with contextlib.suppress(Exception):
        shutil.rmtree(worker._folder)


if __name__ == "__main__":
    main()
