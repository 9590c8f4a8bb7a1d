"""Requests and replies as declarations, one module per subject."""
