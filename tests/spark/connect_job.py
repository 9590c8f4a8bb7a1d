"""Uses the data source through Spark Connect: `python connect_job.py NAMESERVERS TOPIC`."""

from __future__ import annotations

import json
import sys
import tempfile

from pyspark.sql import SparkSession

from sprocket.spark.launching.launch import prepare_environment


def main(nameservers: str, topic: str) -> None:
    prepare_environment("local[2]")
    spark = SparkSession.builder.remote("local[2]").getOrCreate()
    rows = spark.createDataFrame([(b"one",), (b"two",)], "body binary")
    rows.write.format("rocketmq").mode("append").options(
        namesrvAddr=nameservers, topic=topic
    ).save()
    read = {"namesrvAddr": nameservers, "subscribe": topic}
    table = spark.read.format("rocketmq").options(**read).load()
    bodies = sorted(bytes(row.body).decode() for row in table.select("body").collect())
    folder = tempfile.mkdtemp()
    query = (
        spark.readStream.format("rocketmq")
        .options(**read, startingOffsets="earliest")
        .load()
        .writeStream.option("checkpointLocation", f"{folder}/checkpoint")
        .trigger(availableNow=True)
        .start(f"{folder}/written")
    )
    query.awaitTermination()
    count = spark.read.parquet(f"{folder}/written").count()
    found = {"kind": type(spark).__module__, "table": bodies, "stream": count}
    sys.stdout.write(f"{json.dumps(found)}\n")
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
