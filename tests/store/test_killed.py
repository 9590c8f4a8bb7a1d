"""A broker as a process, under load, killed a dozen times: what was acknowledged is there."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest

from sprocket.base.errors import SprocketError
from sprocket.client.producer import Producer
from sprocket.message.message import Message
from sprocket.runtime.clock import SystemClock
from sprocket.runtime.disk import SystemDisk
from sprocket.store.config import StoreConfig
from sprocket.store.store import Store
from sprocket.store.views.tag_codes import TAGS_ONLY
from tests.store.making import HOST, messages
from tests.support import run

pytestmark = pytest.mark.process

SIZES = {
    "log_file_bytes": 1 << 20, "queue_file_bytes": 20_000, "index_slots": 1000,
    "index_entries": 20_000,
}  # fmt: skip
#: `SPROCKET_LONG=1` for dozens.
KILLS = 36 if os.environ.get("SPROCKET_LONG") else 6
#: Of one start and its kill, on a busy machine.
SECONDS_EACH = 60.0
SENDERS = 16

#: Queue number and queue offset by body, as producers were told.
Acknowledged = dict[bytes, tuple[int, int]]


def started(store: Path, flush: str) -> tuple[subprocess.Popen[str], str]:
    """A node as a process of its own, and its name server's address."""
    sizes = [f"--set=store.{name}={value}" for name, value in SIZES.items()]
    process = subprocess.Popen(
        [
            sys.executable, "-m", "sprocket.cli", "standalone", "--store", str(store),
            "--nameserver-port", "0", "--broker-port", "0", f"--set=store.flush={flush}", *sizes,
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )  # fmt: skip
    assert process.stdout is not None
    found = re.search(r"name server (\S+),", process.stdout.readline())
    assert found is not None
    return process, found[1]


async def send_until_killed(
    process: subprocess.Popen[str], address: str, round_number: int, acknowledged: Acknowledged
) -> None:
    something = asyncio.Event()

    async def keep_sending(producer: Producer, sender: int) -> None:
        number = 0
        while True:
            body = b"%d-%d-%d " % (round_number, sender, number) + b"x" * (number % 3000)
            sent = await producer.send(Message("orders", body, keys=[f"k{number}"]))
            acknowledged[body] = (sent.queue.number, sent.queue_offset)
            something.set()
            number += 1

    async with Producer("senders", nameservers=address) as producer:
        senders = [asyncio.ensure_future(keep_sending(producer, n)) for n in range(SENDERS)]
        async with asyncio.timeout(SECONDS_EACH):
            await something.wait()
        await asyncio.sleep(random.random() * 0.5)
        process.kill()
        process.wait()
        for sender in senders:
            sender.cancel()
        for sender in senders:
            with contextlib.suppress(SprocketError, asyncio.CancelledError):
                await sender


async def stored(path: Path) -> Acknowledged:
    store = await Store.open(
        disk=SystemDisk(),
        clock=SystemClock(),
        root=str(path),
        config=StoreConfig(**SIZES),  # type: ignore[arg-type]
        store_host=HOST,
        tag_codes=TAGS_ONLY,
    )
    found = {
        message.body: (number, message.queue_offset)
        for number in store.queues().get("orders", [])
        for message in messages(store, "orders", number)
    }
    await store.close()
    return found


@pytest.mark.timeout(2 * KILLS * SECONDS_EACH)
@pytest.mark.parametrize("flush", ["ASYNC_FLUSH", "SYNC_FLUSH"])
def test_what_was_acknowledged_outlives_every_kill(tmp_path: Path, flush: str) -> None:
    async def check() -> None:
        acknowledged: Acknowledged = {}
        for round_number in range(KILLS):
            process, address = await asyncio.to_thread(started, tmp_path, flush)
            try:
                await send_until_killed(process, address, round_number, acknowledged)
            finally:
                process.kill()
                process.wait()
        found = await stored(tmp_path)
        lost = {body: place for body, place in acknowledged.items() if found.get(body) != place}
        assert not lost, f"{len(lost)} of {len(acknowledged)} are lost, such as {min(lost)[:20]!r}"

    run(check(), seconds=KILLS * SECONDS_EACH)
