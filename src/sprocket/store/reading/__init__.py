"""Reads messages: from a queue, by time and by key."""
