"""Turns records of the log into Arrow batches."""
