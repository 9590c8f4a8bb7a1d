"""A master and slaves of a group, each with a store of its own, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace

from sprocket.base.watermark import Watermark
from sprocket.replication.copies import CopyRules
from sprocket.replication.epoch_file import EpochFile
from sprocket.replication.epoch_frames import SlaveHello
from sprocket.replication.in_sync_copies import InSyncCopies
from sprocket.replication.master import Master
from sprocket.replication.master_address import MasterAddress
from sprocket.replication.master_forms import EpochForm
from sprocket.replication.master_link import StreamEnd
from sprocket.replication.rules import StreamRules
from sprocket.replication.slave import Slave
from sprocket.replication.slave_forms import SlaveMember
from sprocket.store.config import StoreConfig
from sprocket.store.store import Store
from sprocket.store.views.tag_codes import TAGS_ONLY
from sprocket.testing.clock import ManualClock
from sprocket.testing.disk import MemoryDisk
from sprocket.testing.entropy import SeededEntropy
from tests.store.making import HOST, ROOT, SMALL

RULES = StreamRules(heartbeat=0.3, silence=2.0, batch_bytes=700, pauses=(0.1, 1.0))


async def no_difference() -> str | None:
    return None


@dataclass
class Replica:
    """The store of one member, with its epochs."""

    number: int
    store: Store
    epochs: EpochFile
    confirmed: Watermark
    disk: MemoryDisk

    @property
    def port(self) -> int:
        return 10000 + self.number

    @property
    def log(self) -> bytes:
        found, at = b"", self.store.log_start
        while piece := bytes(self.store.replica.read(at + len(found), 1 << 20)):
            found += piece
        return found


async def replica(
    number: int,
    disk: MemoryDisk | None = None,
    *,
    is_copy: bool = False,
    cut_at: int | None = None,
    config: StoreConfig = SMALL,
) -> Replica:
    disk = disk or MemoryDisk()
    confirmed = Watermark()
    store = await Store.open(
        disk=disk,
        clock=ManualClock(),
        root=ROOT,
        config=replace(config),
        store_host=HOST,
        tag_codes=TAGS_ONLY,
        safe=[confirmed],
        is_copy=is_copy,
        cut_at=cut_at,
    )
    epochs = EpochFile(disk, ROOT)
    epochs.load(store.log_start, store.log_end)
    return Replica(number, store, epochs, confirmed, disk)


@dataclass
class Leading:
    """A master at work."""

    replica: Replica
    copies: InSyncCopies
    master: Master
    replicated: Watermark

    def set_in_sync(self, *members: int, version: int = 1) -> None:
        self.copies.set_in_sync(frozenset(members), version)
        self.master.recount()


@asynccontextmanager
async def leading(
    one: Replica, epoch: int, *, rules: StreamRules = RULES, in_sync: tuple[int, ...] = ()
) -> AsyncIterator[Leading]:
    one.epochs.begin(epoch, one.store.log_start, one.store.log_end)
    last = one.epochs.epochs.last
    assert last is not None
    copies = InSyncCopies(
        one.number, CopyRules(), confirmed=one.confirmed.value, epoch_start=last.start
    )
    copies.set_in_sync(frozenset(in_sync) | {one.number}, 0)
    replicated = Watermark()
    master = Master(
        one.store,
        EpochForm(copies, one.epochs, one.confirmed),
        replicated=replicated,
        readable=one.confirmed,
        sendable=one.store.replica.appended,
        host="127.0.0.1",
        port=one.port,
        rules=rules,
        on_stranger=lambda: None,
    )
    async with master:
        yield Leading(one, copies, master, replicated)


@dataclass
class Following:
    """A slave at work."""

    replica: Replica
    slave: Slave
    address: MasterAddress
    task: asyncio.Task[None]
    ends: list[StreamEnd] = field(default_factory=list)


@asynccontextmanager
async def following(
    one: Replica,
    port: int,
    *,
    epoch_min: Callable[[], int] = lambda: 0,
    hello: SlaveHello | None = None,
    rules: StreamRules = RULES,
) -> AsyncIterator[Following]:
    address = MasterAddress()
    address.learn("127.0.0.1:1", f"127.0.0.1:{port}")
    member = SlaveMember(
        one.store,
        hello=hello or SlaveHello(one.number),
        epochs=one.epochs,
        epoch_min=epoch_min,
        confirmed=one.confirmed,
    )
    ends: list[StreamEnd] = []
    slave = Slave(
        one.store,
        address,
        rules=rules,
        is_flushing=False,
        entropy=SeededEntropy(one.number),
        on_copied=lambda: None,
        compared=no_difference,
        stream=member.stream,
        on_end=ends.append,
    )
    async with AsyncExitStack() as stack:
        task = asyncio.ensure_future(slave.run())
        stack.callback(task.cancel)
        yield Following(one, slave, address, task, ends)
    await asyncio.gather(task, return_exceptions=True)
