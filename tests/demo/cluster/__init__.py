"""The demo of failover."""
