"""Assembles a store from its parts, recovers it and opens it."""
