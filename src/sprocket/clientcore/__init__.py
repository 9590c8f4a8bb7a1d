"""What all clients decide alike, whatever their connections: routes, queues, replies, attempts."""
