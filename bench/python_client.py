"""The Python client as a process of its own, which measures what it is told to.

It takes one command a line on standard input and answers with one line, like the Java driver of
`tests/compat/java`, whose `bench.*` commands do the same things in the same way: so both clients
can be asked alike, and each counts its own processor time.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import struct
import subprocess
import sys
import time
import traceback
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from sprocket import Message, Producer, PushConsumer, SimpleConsumer, StoredMessage
from sprocket.client.config import ProducerConfig
from sprocket.client.popping.message_source import Mode

Json = dict[str, Any]

PATIENCE_SECONDS = 120.0
_PROBE_SECONDS = 0.05
#: Which run it belongs to, which message it is, when it was sent (ns).
_STAMP = struct.Struct(">qiq")


class PythonClient:
    """Starts the process and asks it."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "bench.python_client"]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def call(self, command: str, /, **args: object) -> Json:
        """Runs one command to its end and returns the answer."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"command": command, "args": args}) + "\n")
        self._process.stdin.flush()
        answer: Json = json.loads(self._process.stdout.readline() or '{"error": "it has ended"}')
        if "error" in answer:
            raise RuntimeError(f"the Python client, {command}: {answer['error']}")
        return answer

    def kill(self) -> None:
        """Ends it as a crash would, if it has not ended."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.communicate()

    def __enter__(self) -> PythonClient:
        return self

    def __exit__(self, *error: object) -> None:
        self.kill()


class Stopwatch:
    """Wall time, and the processor time of this whole process."""

    def __init__(self) -> None:
        self._cpu = time.process_time()
        self.start = time.perf_counter()

    def stop(self) -> Json:
        seconds = time.perf_counter() - self.start
        return {"seconds": seconds, "cpuSeconds": time.process_time() - self._cpu}


def quantiles(nanoseconds: Sequence[int]) -> Json:
    ordered = sorted(nanoseconds)

    def at(share: float) -> float:
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))] / 1e6

    return {"p50Ms": at(0.5), "p99Ms": at(0.99)}


async def send(*, namesrv: str, topic: str, count: int, window: int, bodyBytes: int) -> Json:
    """`count` sends, at most `window` of them unanswered."""
    body = bytes(bodyBytes)
    latencies: list[int] = []
    numbers = iter(range(count))

    async def send_in_turn(producer: Producer) -> None:
        for _ in numbers:
            began = time.perf_counter_ns()
            await producer.send(Message(topic, body))
            latencies.append(time.perf_counter_ns() - began)

    async with Producer("bench", nameservers=namesrv, config=patient()) as producer:
        await producer.queues(topic)
        watch = Stopwatch()
        await asyncio.gather(*(send_in_turn(producer) for _ in range(window)))
        return {**watch.stop(), **quantiles(latencies)}


async def consume(
    *,
    namesrv: str,
    topic: str,
    group: str,
    count: int,
    ordered: bool = False,
    mode: Mode = "pull",
) -> Json:
    """A new group takes `count` messages of a topic; timed from the first to the last."""
    left = itertools.count(count - 1, -1)
    watch: Stopwatch | None = None
    result: asyncio.Future[Json] = asyncio.get_running_loop().create_future()

    async def take(message: StoredMessage) -> None:
        nonlocal watch
        if watch is None:
            watch = Stopwatch()
        if next(left) == 0:
            result.set_result(watch.stop())

    consumer = PushConsumer(group, nameservers=namesrv, start="first", ordered=ordered, mode=mode)
    async with consumer:
        consumer.on(topic)(take)
        return await result


async def receive(*, namesrv: str, topic: str, group: str, count: int, batch: int) -> Json:
    """A new group receives and acknowledges `count` messages of a topic in batches."""
    async with SimpleConsumer(group, nameservers=namesrv, start="first") as consumer:
        consumer.subscribe(topic)
        left, watch = count, None
        while left > 0:
            messages = await consumer.receive(batch)
            watch = watch or Stopwatch()
            await consumer.ack(messages)
            left -= len(messages)
        assert watch is not None
        return watch.stop()


async def idle(*, namesrv: str, topic: str, group: str, settleSeconds: int, seconds: int) -> Json:
    """A consumer of a topic to which nothing comes."""

    async def take(message: StoredMessage) -> None:
        raise AssertionError("nothing comes")

    async with PushConsumer(group, nameservers=namesrv, start="last") as consumer:
        consumer.on(topic)(take)
        await asyncio.sleep(settleSeconds)
        watch = Stopwatch()
        await asyncio.sleep(seconds)
        return {**watch.stop(), "queues": len(consumer.queues)}


async def latency(
    *, namesrv: str, topic: str, group: str, count: int, warmUp: int, perSecond: int, bodyBytes: int
) -> Json:
    """`count` messages at `perSecond`, after `warmUp` others at the same pace.

    The time is that from the call that sends one to the call that hands it to the listener, in
    this same process.
    """
    run = time.perf_counter_ns()
    latencies: dict[int, int] = {}
    ready, done = asyncio.Event(), asyncio.Event()
    filler = bytes(bodyBytes - _STAMP.size)

    def stamped(number: int) -> Message:
        return Message(topic, _STAMP.pack(run, number, time.perf_counter_ns()) + filler)

    async def take(message: StoredMessage) -> None:
        now = time.perf_counter_ns()
        of_run, number, sent = _STAMP.unpack_from(message.body)
        if of_run != run:
            return
        ready.set()
        if number >= warmUp:
            latencies[number] = now - sent
            if len(latencies) == count:
                done.set()

    async with (
        Producer("bench", nameservers=namesrv, config=patient()) as producer,
        PushConsumer(group, nameservers=namesrv, start="first") as consumer,
    ):
        consumer.on(topic)(take)
        while not ready.is_set():
            await producer.send(stamped(-1))
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_PROBE_SECONDS):
                    await ready.wait()
        watch = Stopwatch()
        async with asyncio.TaskGroup() as tasks:
            for number in range(warmUp + count):
                await until(watch, number / perSecond)
                tasks.create_task(producer.send(stamped(number)))
        await done.wait()
        return {**watch.stop(), **quantiles(list(latencies.values()))}


async def until(watch: Stopwatch, seconds: float) -> None:
    """Waits until so long after the watch began; not at all if that is past."""
    await asyncio.sleep(max(0.0, watch.start + seconds - time.perf_counter()))


def patient() -> ProducerConfig:
    """Time for a busy machine; everything else is what a user gets."""
    return ProducerConfig(send_timeout_ms=10_000)


COMMANDS: dict[str, Callable[..., Awaitable[Json]]] = {
    "bench.send": send,
    "bench.consume": consume,
    "bench.receive": receive,
    "bench.latency": latency,
    "bench.idle": idle,
}


async def answer(line: str) -> Json:
    request = json.loads(line)
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            return await COMMANDS[request["command"]](**request["args"])
    except Exception as error:  # whatever it is, the asker is told
        traceback.print_exc()
        return {"error": repr(error)}


async def main() -> None:
    while line := await asyncio.to_thread(sys.stdin.readline):
        sys.stdout.write(json.dumps(await answer(line)) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    try:
        import uvloop
    except ImportError:
        asyncio.run(main())
    else:
        uvloop.run(main())
