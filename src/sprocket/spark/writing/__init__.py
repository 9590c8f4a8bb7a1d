"""Rows written to topics in batch and as a stream."""
