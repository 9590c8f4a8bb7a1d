"""A Python consumer as a process of its own: for each line on standard input it says its queues.

python -m bench.member NAMESERVERS GROUP TOPIC ordered|concurrent
"""

from __future__ import annotations

import asyncio
import json
import sys

from sprocket import PushConsumer, StoredMessage


async def main(nameservers: str, group: str, topic: str, kind: str) -> None:
    """Consumes until standard input ends, then leaves in order."""
    consumer = PushConsumer(
        group, nameservers=nameservers, start="first", ordered=kind == "ordered"
    )

    @consumer.on(topic)
    async def consume(message: StoredMessage) -> None:
        pass

    async with consumer:
        loop = asyncio.get_running_loop()
        lines = asyncio.StreamReader()
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
        while await lines.readline():
            held = [f"{q.broker}:{q.number}" for q in consumer.queues if q.topic == topic]
            sys.stdout.write(json.dumps(held) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
