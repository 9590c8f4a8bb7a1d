"""Registers `.format("rocketmq")` with Spark, which imports all packages named `pyspark_*`."""

from sprocket.spark.source import RocketMQSource as DefaultSource

__all__ = ["DefaultSource"]
