"""What must hold of a group that elects its master, checked from inside of its members."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from sprocket.base.errors import OffsetOutOfRange
from sprocket.message.record import decode
from sprocket.store.store import Store
from sprocket.testing.cluster import Cluster, Machine
from sprocket.testing.invariants import Violation

TOPIC, QUEUES, GROUP = "elected", 2, "readers"
#: Committed offsets may go back to what they were so many seconds before their master was lost: a
#: second on the way to the slaves, and what a slave may be behind before it leaves the in-sync set.
BACK_SECONDS_MAX = 6.0


class SeenRecord(NamedTuple):
    """What a reader saw at a queue offset."""

    log_offset: int
    key: str


class GroupChecks:
    """The invariants of one group.

    Args:
        cluster: its members are the brokers.
        copies: in how many logs an acknowledged message is.
        is_flushing: whether only what is on a disk counts.

    Attributes:
        seen: by queue number and queue offset, what readers saw there.
    """

    def __init__(self, cluster: Cluster, *, copies: int, is_flushing: bool) -> None:
        self._cluster = cluster
        self._network = cluster.network
        self._copies = copies
        self._is_flushing = is_flushing
        self.seen: dict[tuple[int, int], SeenRecord] = {}
        #: By member and queue number, up to where its messages were read.
        self._read_to: dict[tuple[str, int, int], int] = defaultdict(int)
        #: By epoch, who led in it.
        self._leaders: dict[int, str] = {}
        #: By queue number, when committed offsets rose, and to what; when a master was seen last.
        self._risen: dict[int, list[tuple[float, int]]] = defaultdict(list)
        self._looked_at = 0.0

    def open_members(self) -> Iterator[tuple[Machine, Store]]:
        """The members that run and are open, with their stores."""
        for machine in self._cluster.brokers:
            store = getattr(getattr(machine.server, "_inside", None), "store", None)
            if machine.is_running and store is not None:
                yield machine, store

    def _stores(self) -> Iterator[Store]:
        """The last stores of all members, running or not."""
        for machine in self._cluster.brokers:
            store = getattr(machine.server, "_store", None)
            if store is not None:
                yield store

    def leading(self) -> Iterator[tuple[int, Machine]]:
        """The members that lead now, with their epochs."""
        for machine, _ in self.open_members():
            roles = getattr(machine.server._group, "_roles", None)
            if roles is not None and roles.standing.is_leading:
                yield roles.standing.epoch, machine

    def master(self) -> Machine:
        """The member that leads in the newest epoch."""
        return max(self.leading(), key=lambda each: each[0])[1]

    def check_copies(self, key: str, number: int, offset: int) -> None:
        """An acknowledged message is in as many logs as its sender was promised.

        Raises:
            Violation: it is not.
        """
        ends = {store: self._end_of(store, number, offset) for store in self._stores()}
        end = max((each for each in ends.values() if each is not None), default=0)
        held = sum(
            self._safe_end(store) >= end > 0 if _is_closed(store) else each is not None
            for store, each in ends.items()
        )
        if held < self._copies:
            raise Violation(
                f"{key} at offset {offset} of queue {number} was acknowledged and is in {held} logs"
            )

    def _end_of(self, store: Store, number: int, offset: int) -> int | None:
        """Where a message's record ends in a log; None if that does not have it."""
        queue = store._by_name.get((TOPIC, number))
        if queue is None or not queue.min_offset <= offset < queue.max_offset:
            return None
        log_offset, size = queue.position(offset)
        return log_offset + size if log_offset + size <= self._safe_end(store) else None

    def _safe_end(self, store: Store) -> int:
        """The end of what a member keeps if it is lost now."""
        end = int(store.log_end)
        return min(end, store.flushed.value) if self._is_flushing else end

    def check(self) -> None:
        """What must hold at any time.

        Raises:
            Violation: it does not.
        """
        for epoch, machine in self.leading():
            before = self._leaders.setdefault(epoch, machine.name)
            if before != machine.name:
                raise Violation(f"{before} and {machine.name} both lead in epoch {epoch}")
        for machine, store in self.open_members():  # consumers may read from slaves, too
            for number in range(QUEUES):
                self._note_readable(machine, store, number)
        if any(self.leading()):
            self._check_committed(self.master())

    def _note_readable(self, machine: Machine, store: Store, number: int) -> None:
        """Reads what a member shows to consumers; it must be what others have shown there."""
        place = (machine.name, machine.starts, number)
        while self._read_to[place] < store.max_offset(TOPIC, number):
            found = store.read(TOPIC, number, self._read_to[place], count_max=1, bytes_max=1 << 20)
            for part in found.parts:
                message = decode(part)
                seen = SeenRecord(message.log_offset, message.keys[0])
                before = self.seen.setdefault((number, message.queue_offset), seen)
                if before != seen:
                    raise Violation(
                        f"{machine.name} shows {seen} at offset {message.queue_offset} of queue "
                        f"{number}, where readers have seen {before}"
                    )
            if found.next_offset <= self._read_to[place]:
                return
            self._read_to[place] = int(found.next_offset)

    def _check_committed(self, master: Machine) -> None:
        """Offsets that are lost with a master were committed in its last seconds."""
        if master.is_paused:
            return
        now, offsets = self._network.now(), master.server._parts.tables.offsets
        for number in range(QUEUES):
            committed = offsets.committed(GROUP, TOPIC, number) or 0
            risen = self._risen[number]
            passed = next((at for at, value in risen if value > committed), now)
            if self._looked_at - passed > BACK_SECONDS_MAX:
                raise Violation(
                    f"{master.name} has {committed} committed in queue {number}; that was passed "
                    f"{self._looked_at - passed:.1f} s before the last master was lost"
                )
            if passed < now:
                risen.clear()
            elif not risen or committed > risen[-1][1]:
                risen.append((now, committed))
        self._looked_at = now

    def check_the_end(self, acknowledged: Mapping[str, tuple[int, int]]) -> None:
        """All logs are equal, and hold all that was acknowledged or read.

        Args:
            acknowledged: keys of messages, with queue number and queue offset.

        Raises:
            Violation: it is not so.
        """
        (_, first), *others = self.open_members()
        for machine, store in others:
            self._compare(machine.name, store, first)
        self.check()
        final = {place: seen.key for place, seen in self.seen.items()}
        for number in range(QUEUES):
            end = first.max_offset(TOPIC, number)
            gone = [place for place in final if place[0] == number and place[1] >= end]
            if gone:
                raise Violation(f"readers saw {len(gone)} messages that are gone: {gone[:3]}")
        if self._copies > 1:
            for key, place in acknowledged.items():
                if final.get(place) != key:
                    found = final.get(place)
                    raise Violation(f"{key} was acknowledged at {place}, and there is {found}")

    def _compare(self, name: str, store: Store, other: Store) -> None:
        at = int(max(store.log_start, other.log_start))
        while at < store.log_end:
            try:
                own, theirs = store.replica.read(at, 1 << 14), other.replica.read(at, 1 << 14)
            except OffsetOutOfRange:
                return
            if own != theirs:
                raise Violation(f"the log of {name} differs from another one's behind {at}")
            at += len(own)


def _is_closed(store: Store) -> bool:
    """Whether a member was killed or has ended: it does not know its queues then, but its files
    are there."""
    return not store._by_name
