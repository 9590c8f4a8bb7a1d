"""Connections, heartbeats and routes that the clients of a process share."""
