"""How a message is sent: its envelope, the choice of a queue, retries, replies to requests."""
