"""Replication: a master's log, sent byte for byte to its slaves, and how far they have it."""
