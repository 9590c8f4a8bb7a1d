"""RocketMQ's remoting protocol on asyncio: servers, connections and connection pools."""
