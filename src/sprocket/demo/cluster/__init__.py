"""The demo of failover: `make cluster` starts a group of brokers, breaks it, and measures."""
