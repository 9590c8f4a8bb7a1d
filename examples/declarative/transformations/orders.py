"""A topic as a streaming table, what is in it by tag, and what was paid sent on."""

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

spark = SparkSession.active()
NAMESERVERS = spark.conf.get("sprocket.nameservers", "127.0.0.1:9876")


@dp.table
def orders() -> DataFrame:
    """Each run reads what has come since the last."""
    return (
        spark.readStream.format("rocketmq")
        .option("namesrvAddr", NAMESERVERS)
        .option("subscribe", "orders")
        .option("startingOffsets", "earliest")
        .load()
    )


@dp.materialized_view
def orders_by_tag() -> DataFrame:
    """Made anew by each run, of all that has been read."""
    return spark.read.table("orders").groupBy("tag").agg(f.count("*").alias("orders"))


dp.create_sink(
    name="paid_topic", format="rocketmq", options={"namesrvAddr": NAMESERVERS, "topic": "paid"}
)


@dp.append_flow(target="paid_topic")
def paid() -> DataFrame:
    """What was paid goes to a topic of its own."""
    paid_orders = spark.readStream.table("orders").where("tag = 'paid'")
    return paid_orders.select("key", "tag", "body", "properties")
