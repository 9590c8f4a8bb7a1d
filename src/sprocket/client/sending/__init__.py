"""How a message is sent: the choice of a queue, retries, and replies to request messages."""
