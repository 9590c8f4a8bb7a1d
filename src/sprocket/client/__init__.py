"""Producers and consumers."""
