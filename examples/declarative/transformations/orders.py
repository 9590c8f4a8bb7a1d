"""A topic as a streaming table, its messages counted by tag, paid orders sent to a topic."""

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

spark = SparkSession.active()
NAMESERVERS = spark.conf.get("sprocket.nameservers", "127.0.0.1:9876")


@dp.table
def orders() -> DataFrame:
    """Each run reads the messages that are new since the last run."""
    return (
        spark.readStream.format("rocketmq")
        .option("namesrvAddr", NAMESERVERS)
        .option("subscribe", "orders")
        .option("startingOffsets", "earliest")
        .load()
    )


@dp.materialized_view
def orders_by_tag() -> DataFrame:
    """Each run computes this again from all messages read so far."""
    return spark.read.table("orders").groupBy("tag").agg(f.count("*").alias("orders"))


dp.create_sink(
    name="paid_topic", format="rocketmq", options={"namesrvAddr": NAMESERVERS, "topic": "paid"}
)


@dp.append_flow(target="paid_topic")
def paid() -> DataFrame:
    """Sends paid orders to a topic of their own."""
    paid_orders = spark.readStream.table("orders").where("tag = 'paid'")
    return paid_orders.select("key", "tag", "body", "properties")
