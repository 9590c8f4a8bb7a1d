"""RocketMQ's remoting protocol without a socket. Pure."""
