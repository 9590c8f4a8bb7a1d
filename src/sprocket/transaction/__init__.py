"""Transactions: half messages, how they end, and who is asked about those that do not."""
