"""Spark with our source and sink, beside Spark's own connector for Kafka."""
