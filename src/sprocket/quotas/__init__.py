"""Quotas: what a client, user, topic or group may take of a server, and what happens above it."""
