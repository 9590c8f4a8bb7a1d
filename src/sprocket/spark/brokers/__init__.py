"""Blocking connections to brokers and name servers, for Spark's processes."""
