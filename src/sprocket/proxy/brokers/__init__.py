"""The way to the brokers: over the network, or in the same process."""
