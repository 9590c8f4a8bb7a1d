"""How messages reach listeners: concurrent, ordered, iterated, polled; and retries."""
