"""RocketMQ's remoting protocol without I/O. Pure."""
