"""Any history of lite topics: appends, stops, kills, losses of power and of files, retention, and
deletions, against lists in memory; and the same records at a slave."""

from __future__ import annotations

from collections import defaultdict

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from sprocket.message.lite import LiteName
from sprocket.message.record import parse
from sprocket.store.inspection.inspected import InspectedStore
from sprocket.store.inspection.verify import Verification
from sprocket.store.store import Store
from sprocket.store.views import lite_queue
from sprocket.testing.clock import ManualClock
from sprocket.testing.disk import FaultyDisk, MemoryDisk
from tests.store.making import ROOT, SMALL, a_draft, opened
from tests.support import run

names = st.builds(LiteName, st.sampled_from(["chats", "jobs"]), st.sampled_from("abc"))


class LiteHistory(RuleBasedStateMachine):
    """`written` lists the messages of the lite topics, each with the log offset behind it."""

    store: Store
    disk: FaultyDisk

    def __init__(self) -> None:
        super().__init__()
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(lite_queue, "STRIDE", 4)
        self.written: dict[LiteName, list[tuple[bytes, int]]] = defaultdict(list)
        #: How many messages of a lite topic were gone before the first of `written`.
        self.before: dict[LiteName, int] = defaultdict(int)
        #: Behind the highest offset that any message of a lite topic ever had.
        self.highest: dict[LiteName, int] = defaultdict(int)
        self.count = 0
        self.clock = ManualClock()

    def teardown(self) -> None:
        self.patch.undo()

    @initialize(seed=st.integers(0, 1 << 16))
    def begin(self, seed: int) -> None:
        self.disk = FaultyDisk(seed)
        self.store = run(opened(self.disk, clock=self.clock))

    @rule(name=names, sizes=st.lists(st.integers(0, 300), min_size=1, max_size=6))
    def append(self, name: LiteName, sizes: list[int]) -> None:
        for size in sizes:
            self.count += 1
            body = b"%d:" % self.count + b"x" * size
            draft = a_draft(body, topic=name.parent, queue_number=self.count % 2)
            stored = self.store.lite.append(draft, name)
            if not self.written[name]:
                self.before[name] = self.store.lite.max_offset(name) - 1
                assert self.before[name] >= self.highest[name]
            self.written[name].append((body, stored.end))
            self.highest[name] = self.store.lite.max_offset(name)

    @rule(topic=st.sampled_from(["chats", "orders"]))
    def append_other(self, topic: str) -> None:
        self.store.append(a_draft(b"INNER_MULTI_DISPATCH\x01%LMQ%$chats$a\x02", topic=topic))

    @rule()
    def sync(self) -> None:
        run(self.store._flush.sync_log())
        run(self.store._flush.sync_views(is_thorough=True))

    @rule(parent=st.sampled_from(["chats", "jobs"]))
    def delete_parent(self, parent: str) -> None:
        self.store.delete_topic(parent)
        for name in [name for name in self.written if name.parent == parent]:
            del self.written[name]
            self.before.pop(name, None)
            self.highest.pop(name, None)

    @rule(count=st.integers(1, 2))
    def expire(self, count: int) -> None:
        space = self.store.disk_space
        space.rules = space.rules._replace(files_max=count, bytes_max=1)
        self.sync()
        run(space.remove_old())
        self.drop_expired()

    def drop_expired(self) -> None:
        start = self.store.log_start
        for name, messages in list(self.written.items()):
            gone = sum(end <= start for _, end in messages)
            del messages[:gone]
            self.before[name] += gone
            if not messages:  # it begins anew
                del self.written[name], self.before[name]

    @rule()
    def lose_files(self) -> None:
        run(self.store.close())
        disk = self.disk
        for path in [path for path in disk._files if "/litequeue/" in path]:
            disk.remove(path)
        self.reopen(disk)

    @rule()
    def unmap(self) -> None:
        self.store._queues.unmap_idle()
        for view in self.store._views:
            view.unmap_idle()

    @rule()
    def stop(self) -> None:
        run(self.store.close())
        found = Verification(InspectedStore(self.disk, ROOT, SMALL)).findings()
        assert not [each for each in found if each.is_fault]
        self.reopen(self.disk)

    @rule()
    def kill(self) -> None:
        self.reopen(self.disk.after_kill())

    @rule()
    def lose_power(self) -> None:
        self.reopen(self.disk.after_power_loss())
        for name, messages in list(self.written.items()):
            messages[:] = [each for each in messages if each[1] <= self.store.log_end]
            if not messages:
                del self.written[name]
            self.highest[name] = 0

    def reopen(self, disk: MemoryDisk) -> None:
        assert isinstance(disk, FaultyDisk)
        self.disk = disk
        self.store = run(opened(disk, clock=self.clock))

    @invariant()
    def every_lite_topic_holds_what_was_written_to_it(self) -> None:
        if hasattr(self, "store"):
            self.compare(self.store)

    @rule()
    def copy_to_a_slave(self) -> None:
        slave = run(opened(MemoryDisk(), clock=self.clock))
        copy, start = slave.replica.copy(), int(self.store.log_start)
        end = int(self.store.log_end)
        while start < end:
            data = bytes(self.store.replica.read(start, 1000))
            copy.append(start, data)
            start += len(data)
        slave.replica.delete_before(
            {name: self.store.replica.deleted_at(name) for name in ("chats", "jobs")}
        )
        self.compare(slave)

    def compare(self, store: Store) -> None:
        lite = store.lite
        wanted = {name for name, messages in self.written.items() if messages}
        found = {name for parent in lite.parents() for name in lite.names(parent)}
        assert found == wanted
        assert len(lite) == len(wanted)
        for name, messages in self.written.items():
            low = self.before[name]
            high = low + len(messages)
            assert (lite.min_offset(name), lite.max_offset(name)) == (low, high)
            read = lite.read(name, 0, count_max=99, bytes_max=1 << 20)
            assert [offset for offset, _ in read.messages] == list(range(low, high))
            assert [parse(record).body for _, record in read.messages] == [b for b, _ in messages]
            for offset in {low, (low + high) // 2, high - 1}:
                some = lite.read(name, offset, count_max=2, bytes_max=1 << 20)
                assert [at for at, _ in some.messages] == list(range(offset, high))[:2]
                assert lite.time_of(name, offset) >= 0


TestLiteHistory = LiteHistory.TestCase
TestLiteHistory.settings = settings(
    max_examples=40, stateful_step_count=20, deadline=None, print_blob=True
)
