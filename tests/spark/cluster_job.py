"""What the cluster tests run: a topic read, and copied to another one, by executors.

Arguments: master, name servers. It prints one line of JSON: what was found, and where executors
have the package from.
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


def main(master: str, names: str) -> None:
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
        "executors": len(spark.sparkContext._jsc.sc().statusTracker().getExecutorInfos()) - 1,
        "places": sorted({place for _, place in rows}),
    }
    sys.stdout.write(f"FOUND {json.dumps(found)}\n")
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
