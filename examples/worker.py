"""A worker that takes one job at a time, however long each takes, and loses none if it dies.

Run as many as you like: `sprocket standalone` in one terminal, `sprocket send jobs "20"` for a job
of 20 seconds, and this program in several others. The first argument is the name servers, by
default 127.0.0.1:9876.
"""

import asyncio
import sys

import sprocket

INVISIBLE_MS = 10_000


async def work(consumer: sprocket.SimpleConsumer, job: sprocket.PoppedMessage) -> None:
    """Does a job, and has it invisible to the other workers for as long as that takes."""
    doing = asyncio.ensure_future(asyncio.sleep(float(job.body)))
    while not doing.done():
        await asyncio.wait([doing], timeout=INVISIBLE_MS / 3000)
        await consumer.change_invisible_time(job, INVISIBLE_MS)
    await doing
    await consumer.ack(job)
    print("done:", job.body.decode(), "tries before:", job.reconsume_times)


async def main() -> None:
    nameservers = sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:9876"
    async with sprocket.SimpleConsumer("workers", nameservers=nameservers, start="first") as one:
        one.subscribe("jobs")
        while True:
            for job in await one.receive(1, invisible_ms=INVISIBLE_MS):
                try:
                    await work(one, job)
                except sprocket.HandleExpired:
                    print("somebody else has it by now:", job.body.decode())
                except ValueError:
                    await one.forward_to_dead_letters(job)


if __name__ == "__main__":
    raise SystemExit(sprocket.run(main()))
