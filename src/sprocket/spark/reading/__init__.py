"""Reads topics in batch and as a stream."""
