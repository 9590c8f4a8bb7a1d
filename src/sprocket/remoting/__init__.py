"""RocketMQ's remoting protocol on asyncio: servers that answer, pools that call."""
