"""How messages enter a broker: sends, retries, transactions, timers, the one door to the log."""
