"""Reads a topic as a table: the number and amount of orders by region and status.

First start a node that has messages: `make run` creates some, then
`sprocket standalone --store sprocket-data` serves them. The first argument is the name servers,
by default 127.0.0.1:9876.
"""

import sys

from pyspark.sql import functions as f

import sprocket.spark

nameservers = sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:9876"

spark = sprocket.spark.session("read-topic")
messages = (
    spark.read.format("rocketmq")
    .option("namesrvAddr", nameservers)
    .option("subscribe", "orders")
    .option("startingOffsets", "earliest")
    .load()
)
messages.printSchema()

orders = messages.withColumn(
    "order", f.from_json(f.col("body").cast("string"), "order string, items int, amount double")
)
(
    orders.groupBy(f.col("properties")["region"].alias("region"), f.col("tag").alias("status"))
    .agg(f.count("*").alias("messages"), f.round(f.sum("order.amount"), 2).alias("amount"))
    .orderBy("region", "status")
    .show()
)
spark.stop()
