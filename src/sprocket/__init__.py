"""Apache RocketMQ's messaging in Python: name server, broker, client, Spark."""
