"""How the consumers of a group share queues: membership, rebalance, leases, offsets."""
