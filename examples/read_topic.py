"""A topic as a table: how much of each kind of order came from where.

Start a node first, with messages in it: `make run` leaves some, then
`sprocket standalone --store sprocket-data`. Name servers are the first argument, or 127.0.0.1:9876.
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
    .agg(f.count("*").alias("messages"), f.round(f.sum("order.amount"), 2).alias("worth"))
    .orderBy("region", "status")
    .show()
)
spark.stop()
