"""The Spark part of the demo: reads the topic, writes Parquet and totals.

`python -m sprocket.demo.report` is a process of its own: it starts Spark, waits on standard input
for its task, and reports steps and result on standard output (`events`). At the end of its input
the process ends, and Spark with it, so no process outlives the demo.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING

from sprocket.base.errors import SprocketError
from sprocket.demo.events import (
    DemoReport,
    DemoStep,
    Event,
    Failure,
    RegionTotal,
    Task,
    decode_task,
    encode,
)
from sprocket.demo.orders import STATUSES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Say = Callable[[Event], None]

_ORDER = "order string, customer string, items int, amount double"

#: The job takes seconds, so Java's optimising compiler would cost more time than it saves.
_SHORT_JOB = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}


def report(spark: SparkSession, task: Task, say: Say) -> DemoReport:
    """Reads the topic, writes it as Parquet by region and status, and computes totals."""
    from pyspark.sql import functions as f

    messages = (
        spark.read.format("rocketmq")
        .option("namesrvAddr", task.nameservers)
        .option("subscribe", task.topic)
        .load()
    )
    orders = messages.select(
        "message_id",
        "key",
        f.col("properties")["region"].alias("region"),
        f.col("tag").alias("status"),
        "store_timestamp",
        "body",
        f.from_json(f.col("body").cast("string"), _ORDER).alias("order"),
    )
    say(DemoStep("Spark reads the topic and writes Parquet by region and status"))
    orders.write.mode("overwrite").partitionBy("region", "status").parquet(task.folder)
    say(DemoStep("Spark computes the totals"))
    return _summed(spark.read.parquet(task.folder), Path(task.folder))


def _summed(orders: DataFrame, folder: Path) -> DemoReport:
    from pyspark.sql import functions as f

    counted = orders.groupBy("region").agg(
        f.count("*").alias("messages"),
        f.coalesce(f.sum("order.amount"), f.lit(0.0)).alias("amount"),
        *(f.count_if(f.col("status") == status).alias(status) for status in STATUSES),
    )
    rows = counted.orderBy("region").collect()
    regions = [
        RegionTotal(row.region, {status: row[status] for status in STATUSES}, row.amount)
        for row in rows
    ]
    messages = sum(row.messages for row in rows)
    files = list(folder.rglob("*.parquet"))
    return DemoReport(
        messages=messages,
        others=messages - sum(sum(one.orders.values()) for one in regions),
        regions=regions,
        files=len(files),
        file_bytes=sum(one.stat().st_size for one in files),
    )


def main() -> int:
    """Starts Spark, waits for the task, carries it out."""
    from sprocket.spark import session

    say = _take_output()
    lines: SimpleQueue[bytes] = SimpleQueue()
    threading.Thread(target=_listen, args=(lines,), daemon=True).start()
    try:
        say(DemoStep("Spark starts"))
        spark = session("sprocket-demo", **_SHORT_JOB)
        say(report(spark, decode_task(lines.get()), say))
        spark.stop()
    except SprocketError as error:
        say(Failure(str(error)))
        return 1
    except Exception as error:  # the root of this process: its parent prints the reason
        say(Failure(f"{type(error).__name__}: {error}"))
        raise
    return 0


def _take_output() -> Say:
    """Reserves standard output for events; all other output goes to standard error."""
    events = os.fdopen(os.dup(sys.stdout.fileno()), "wb", buffering=0)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())

    def say(event: Event) -> None:
        events.write(encode(event) + b"\n")

    return say


def _listen(lines: SimpleQueue[bytes]) -> None:
    """Reads the parent's lines; ends the process when they end. The JVM ends with its pipe."""
    # Unbuffered: a buffer's lock, held by this thread, would abort the interpreter as it ends.
    with os.fdopen(os.dup(sys.stdin.fileno()), "rb", buffering=0) as parent:
        for line in parent:
            lines.put(line)
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main())
