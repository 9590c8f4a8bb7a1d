"""Static topics at brokers."""
