"""A process that fills the disk of a store, for `test_disk_room`.

    python -m tests.store.filling FOLDER fill|kill|read

It prints how many messages there are. `fill` stops in order, `kill` does not.
"""

from __future__ import annotations

import asyncio
import os
import sys

from sprocket.base.errors import StoreError
from sprocket.runtime.clock import SystemClock
from sprocket.runtime.disk import SystemDisk
from sprocket.store.config import StoreConfig
from sprocket.store.store import Store
from sprocket.store.views.tag_codes import TAGS_ONLY
from tests.store.making import HOST, a_draft, bodies

CONFIG = StoreConfig(
    log_file_bytes=1 << 20,
    queue_file_bytes=200_000,
    index_slots=10_000,
    index_entries=20_000,
    disk_full_percent=100,
    disk_forced_percent=100,
    may_force=False,
)


async def main(folder: str, what: str) -> None:
    store = await Store.open(
        disk=SystemDisk(),
        clock=SystemClock(),
        root=folder,
        config=CONFIG,
        store_host=HOST,
        tag_codes=TAGS_ONLY,
    )
    work = asyncio.create_task(store.run())
    if what != "read":
        for size in (32_000, 3000, 200, 1):
            await fill(store, size)
    count = sum(len(bodies(store, number=number)) for number in range(3))
    sys.stdout.write(f"{count}\n")
    sys.stdout.flush()
    if what == "kill":
        os._exit(0)
    work.cancel()
    await store.close()


async def fill(store: Store, size: int) -> None:
    """Sends until the disk refuses it, one by one and many at once."""
    number = 0
    while True:
        number += 1
        drafts = [
            a_draft(b"x" * size, queue_number=number % 3, keys=f"k{size}-{number}-{part}")
            for part in range(1 + number % 3 * 2)
        ]
        try:
            if number % 2:
                store.append_batch(drafts)
            else:
                store.append_all(drafts)
        except StoreError:
            return
        if number % 50 == 0:
            await asyncio.sleep(0.05)


asyncio.run(main(*sys.argv[1:]))
