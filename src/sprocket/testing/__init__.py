"""The other world: virtual time, an in-memory network, a faulty disk."""
