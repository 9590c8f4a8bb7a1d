"""Any history of appends, reads, stops, kills and power losses, against a list in memory."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from sprocket.base.errors import StoreError
from sprocket.message.record import Draft, scan
from sprocket.store.reading.queue_reader import ReadStatus
from sprocket.store.store import Store
from sprocket.testing.clock import ManualClock
from sprocket.testing.disk import FaultyDisk, MemoryDisk
from tests.store.making import a_draft, opened
from tests.support import run

names = st.tuples(st.sampled_from(["orders", "%RETRY%g"]), st.integers(0, 2))
body_sizes = st.integers(0, 900)
#: Prepared messages are in no queue, committed ones are.
sys_flags = st.sampled_from([0, 0, 0, 0x8, 0x4])


class History(RuleBasedStateMachine):
    """`written` lists all that was appended, in the order of the log."""

    store: Store
    disk: FaultyDisk

    def __init__(self) -> None:
        super().__init__()
        self.written: list[tuple[tuple[str, int], bytes, int]] = []
        #: Bodies of messages whose topic was deleted since.
        self.deleted: set[bytes] = set()
        self.synced = 0
        self.count = 0
        self.clock = ManualClock()

    @initialize(seed=st.integers(0, 1 << 16))
    def begin(self, seed: int) -> None:
        self.disk = FaultyDisk(seed)
        self.store = run(opened(self.disk, clock=self.clock))

    def draft(self, name: tuple[str, int], size: int, sys_flag: int) -> Draft:
        self.count += 1
        body = b"%d:" % self.count + b"x" * size
        word, unique = f"word-{self.count % 5}", f"id-{self.count}"
        return a_draft(
            body,
            topic=name[0],
            queue_number=name[1],
            sys_flag=sys_flag,
            properties=f"KEYS\x01{word}\x02UNIQ_KEY\x01{unique}\x02".encode(),
            keys=word,
            unique_key=unique,
        )

    def note(self, draft: Draft, end: int) -> None:
        name = (draft.topic, draft.queue_number)
        if not draft.sys_flag & 0x4:
            self.written.append((name, bytes(draft.body), end))
        else:
            self.written.append((("", 0), bytes(draft.body), end))

    def model(self, name: tuple[str, int]) -> list[bytes]:
        return [
            body for queue, body, _ in self.written if queue == name and body not in self.deleted
        ]

    def low(self, name: tuple[str, int]) -> int:
        """How many of a queue's messages were in files that are gone."""
        start = self.store.log_start
        return sum(
            queue == name and body not in self.deleted and end <= start
            for queue, body, end in self.written
        )

    @rule(name=names, size=body_sizes, sys_flag=sys_flags)
    def append(self, name: tuple[str, int], size: int, sys_flag: int) -> None:
        draft = self.draft(name, size, sys_flag)
        place = self.store.append(draft)
        if not sys_flag & 0x4:
            assert place.queue_offset == len(self.model(name))
        self.note(draft, place.end)

    @rule(name=names, sizes=st.lists(body_sizes, max_size=6))
    def append_batch(self, name: tuple[str, int], sizes: list[int]) -> None:
        drafts = [self.draft(name, size, 0) for size in sizes]
        for draft, place in zip(drafts, self.store.append_batch(drafts), strict=True):
            self.note(draft, place.end)

    @rule(name=names)
    def append_too_much(self, name: tuple[str, int]) -> None:
        end = self.store.log_end
        try:
            self.store.append_batch([self.draft(name, 1, 0), self.draft(name, 5000, 0)])
        except StoreError:
            assert self.store.log_end == end
        else:
            raise AssertionError("it was taken")

    @rule(name=names, data=st.data())
    def read(self, name: tuple[str, int], data: st.DataObject) -> None:
        wanted = self.model(name)
        offset = data.draw(st.integers(-1, len(wanted) + 2))
        count_max = data.draw(st.integers(0, 12))
        found = self.store.read(*name, offset, count_max=count_max, bytes_max=4000)
        if self.low(name) <= offset < len(wanted):
            assert found.status is ReadStatus.FOUND
            assert 1 <= found.count <= max(count_max, 1)
            bodies = [m.body for m in scan(b"".join(found.parts))]
            assert bodies == wanted[offset : offset + found.count]
            assert found.next_offset == offset + found.count
        else:
            assert found.count == 0
            assert 0 <= found.next_offset <= len(wanted)

    @rule(topic=st.sampled_from(["orders", "%RETRY%g"]), word=st.integers(0, 4))
    def find(self, topic: str, word: int) -> None:
        found = self.store.find(topic, f"word-{word}", count_max=999)
        bodies = [next(scan(record)).body for record in found]
        wanted = [
            body
            for (named, _), body, end in reversed(self.written)
            if named == topic
            and int(body.partition(b":")[0]) % 5 == word
            and body not in self.deleted
            and end > self.store.log_start
        ]
        left_out = {body for (named, _), body, _ in self.written if not named} | self.deleted
        assert [body for body in bodies if body not in left_out] == wanted

    @rule(count_max=st.integers(1, 10))
    def catch_up(self, count_max: int) -> None:
        self.store._index.catch_up(count_max)

    @rule()
    def sync_log(self) -> None:
        run(self.store._flush.sync_log())
        self.synced = len(self.written)

    @rule(is_thorough=st.booleans())
    def sync_views(self, is_thorough: bool) -> None:
        run(self.store._flush.sync_views(is_thorough=is_thorough))

    @rule(topic=st.sampled_from(["orders", "%RETRY%g"]))
    def delete_topic(self, topic: str) -> None:
        self.store.delete_topic(topic)
        self.deleted |= {body for (named, _), body, _ in self.written if named == topic}

    @rule(count=st.integers(1, 2))
    def expire(self, count: int) -> None:
        self.store.disk_space.rules = self.store.disk_space.rules._replace(
            files_max=count, bytes_max=1
        )
        run(self.store._flush.sync_log())
        self.synced = len(self.written)
        # Hours pass before anything expires, and with them many thorough syncs.
        run(self.store._flush.sync_views(is_thorough=True))
        run(self.store.disk_space.remove_old())

    @rule()
    def lose_views(self) -> None:
        disk = self.disk.after_kill()
        for path in [path for path in disk._files if "/consumequeue/" in path]:
            disk.remove(path)
        self.reopen(disk)
        self.synced = len(self.written)

    @rule()
    def unmap(self) -> None:
        self.store._queues.unmap_idle()

    @rule()
    def stop(self) -> None:
        run(self.store.close())
        self.synced = len(self.written)
        self.reopen(self.disk)

    @rule()
    def kill(self) -> None:
        self.reopen(self.disk.after_kill())
        self.synced = len(self.written)

    @rule()
    def lose_power(self) -> None:
        self.reopen(self.disk.after_power_loss())
        kept = [entry for entry in self.written if entry[2] <= self.store.log_end]
        assert len(kept) >= self.synced
        self.written = kept
        self.synced = len(kept)

    def reopen(self, disk: MemoryDisk) -> None:
        assert isinstance(disk, FaultyDisk)
        self.disk = disk
        self.store = run(opened(disk, clock=self.clock))

    @invariant()
    def every_queue_holds_what_was_written_to_it(self) -> None:
        if not hasattr(self, "store"):
            return
        for name in {queue for queue, _, _ in self.written} - {("", 0)}:
            wanted, low = self.model(name), self.low(name)
            if not wanted[low:]:
                continue
            assert self.store.max_offset(*name) == len(wanted)
            assert self.store.min_offset(*name) == low
            queue = self.store._by_name[name]
            for offset, body in enumerate(wanted[low:], low):
                (message,) = scan(self.store.lookup(queue.position(offset)[0]))
                assert (message.queue[::2], message.queue_offset) == (name, offset)
                assert message.body == body


TestHistory = History.TestCase
TestHistory.settings = settings(
    max_examples=25, stateful_step_count=20, deadline=None, print_blob=True
)
