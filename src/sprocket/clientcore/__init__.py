"""What every client decides, whatever its connections are: routes, queues, replies, attempts."""
