"""Requests that store messages: sends, retries, transactions, timers; and the way to the log."""
