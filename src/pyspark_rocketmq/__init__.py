"""Lets Spark find `.format("rocketmq")` by itself: it looks into packages named `pyspark_*`."""

from sprocket.spark.source import RocketMQSource as DefaultSource

__all__ = ["DefaultSource"]
