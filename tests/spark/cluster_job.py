"""What the cluster tests run: a topic read, copied to another one and archived, by executors.

Arguments: master, name servers, a folder for the archive that all reach. It prints one line of
JSON: what was found, and where executors have the package from.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

import sprocket.spark


def seen(rows: Iterator[Any]) -> Iterator[tuple[str, str]]:
    """The bodies, each with where this executor has the package from."""
    import sprocket

    for row in rows:
        yield row.body.decode(), str(sprocket.__file__)


def archived(spark: Any, names: str, folder: str) -> list[str]:
    """The bodies that an archive of the topic has, made in micro-batches of half of it."""
    from sprocket.spark.pipelines import archive

    job = archive.Archive(nameservers=names, topics=("orders",), folder=folder, batch_rows=250)
    done = job.run(spark)
    bodies = [bytes(row.body).decode() for row in archive.read(spark, folder).collect()]
    assert done.rows == done.total_rows == len(bodies), done
    return sorted(bodies)


def main(master: str, names: str, folder: str) -> None:
    spark = sprocket.spark.session(
        "cluster-job",
        master,
        **{"spark.executor.memory": "512m", "spark.driver.memory": "512m"},
    )
    reader: Any = spark.read.format("rocketmq").option("namesrvAddr", names)
    orders = reader.options(subscribe="orders", minPartitions="4").load()
    copies: Any = orders.select("key", "body").write.format("rocketmq").mode("append")
    copies.option("namesrvAddr", names).option("topic", "copies").save()
    copied = reader.options(subscribe="copies").load()
    rows = copied.select("body").rdd.mapPartitions(seen).collect()
    found = {
        "copies": sorted(body for body, _ in rows),
        "archived": archived(spark, names, folder),
        "executors": len(spark.sparkContext._jsc.sc().statusTracker().getExecutorInfos()) - 1,
        "places": sorted({place for _, place in rows}),
    }
    sys.stdout.write(f"FOUND {json.dumps(found)}\n")
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
