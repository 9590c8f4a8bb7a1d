"""How messages are fetched: pulls, the window of each queue, flow control, statistics."""
