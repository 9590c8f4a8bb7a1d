"""Transactions: half messages, their commit and rollback, and the checks of undecided ones."""
