"""Filters: which messages a subscriber wants. Pure."""
