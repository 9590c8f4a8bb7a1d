"""Lists of epochs: they tell where two logs part, whatever happened to them."""

from __future__ import annotations

from itertools import combinations
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sprocket.base.errors import StoreError
from sprocket.replication.epochs import EPOCHS_MAX, EpochList, EpochStart

#: What may happen to three logs: a kind, a replica, another one, a number.
steps = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(0, 2), st.integers(0, 6)),
    max_size=30,
)


class Replica:
    """A log of records of one byte; each is the epoch in which it was written, and a number."""

    def __init__(self) -> None:
        self.log: list[tuple[int, int]] = []
        self.epochs = EpochList()

    def cut(self, end: int) -> None:
        del self.log[end:]
        self.epochs = self.epochs.cut(end)

    def follow(self, master: Replica, count: int) -> None:
        if self.epochs:
            common = self.epochs.common_end(len(self.log), master.epochs, len(master.log))
            self.cut(common or 0)
        for record in master.log[len(self.log) : len(self.log) + count]:
            entry = master.epochs.at(len(self.log))
            assert entry is not None
            assert entry.epoch == record[0]
            if entry != self.epochs.last:
                self.epochs = self.epochs.added(*entry)
            self.log.append(record)


def common_part(one: Replica, other: Replica) -> int:
    pairs = list(zip(one.log, other.log, strict=False))
    return next((at for at, (a, b) in enumerate(pairs) if a != b), len(pairs))


@given(steps)
def test_the_common_end_is_where_two_logs_part(history: list[tuple[int, int, int, int]]) -> None:
    replicas = [Replica(), Replica(), Replica()]
    epoch = written = 0
    master = replicas[0]
    for kind, one, other, count in history:
        replica = replicas[one]
        if kind == 0:
            epoch += 1
            master = replica
            replica.epochs = replica.epochs.added(epoch, len(replica.log))
        elif kind == 1 and master.epochs.last_epoch == epoch:
            for _ in range(count):
                written += 1
                master.log.append((epoch, written))
        elif kind == 2 and replica is not replicas[other] and replica is not master:
            if replicas[other].epochs:
                replica.follow(replicas[other], count)
        elif kind == 3:  # a crash loses the newest records
            del replica.log[max(len(replica.log) - count, 0) :]
            replica.epochs = replica.epochs.within(len(replica.log))
            if replica is master:
                epoch += 1
                replica.epochs = replica.epochs.added(epoch, len(replica.log))
        for a, b in combinations(replicas, 2):
            end = a.epochs.common_end(len(a.log), b.epochs, len(b.log))
            assert (end or 0) == common_part(a, b)
            assert b.epochs.common_end(len(b.log), a.epochs, len(a.log)) == end


def test_the_newest_epoch_that_began_at_one_place_decides() -> None:
    old = EpochList([(1, 0), (2, 100), (3, 200)])
    new = EpochList([(1, 0), (2, 100), (4, 150)])
    assert old.common_end(300, new, 400) == 150
    assert new.common_end(400, old, 300) == 150
    assert old.common_end(300, EpochList([(1, 0), (2, 90)]), 95) == 90
    assert old.common_end(300, old, 250) == 250
    assert old.common_end(300, EpochList([(4, 0)]), 400) == 0
    assert EpochList([(4, 0)]).common_end(400, old, 300) == 0
    assert old.common_end(300, EpochList([(4, 50)]), 400) is None
    assert old.trimmed(150).common_end(300, EpochList([(4, 0)]), 400) is None
    assert EpochList([(3, 0)]).common_end(300, EpochList([(2, 0), (4, 90)]), 400) == 0
    assert EpochList().common_end(0, old, 300) is None


def test_an_epoch_without_records_gives_way_to_the_next() -> None:
    assert EpochList([(1, 0), (2, 100)]).added(5, 100) == EpochList([(1, 0), (5, 100)])
    for epoch, start in ((2, 150), (1, 150), (3, 99), (-1, 200), (1 << 31, 200)):
        with pytest.raises(ValueError, match="epoch"):
            EpochList([(1, 0), (2, 100)]).added(epoch, start)


def test_a_list_is_cut_and_trimmed_with_its_log() -> None:
    epochs = EpochList([(1, 0), (2, 100), (3, 200)])
    assert epochs.cut(200) == epochs.cut(101) == EpochList([(1, 0), (2, 100)])
    assert epochs.cut(0) == EpochList()
    assert epochs.within(200) == epochs
    assert epochs.within(199) == EpochList([(1, 0), (2, 100)])
    assert epochs.trimmed(99) == epochs
    assert epochs.trimmed(100) == EpochList([(2, 100), (3, 200)])
    assert epochs.trimmed(10**6) == EpochList([(3, 200)])


def test_it_says_the_epoch_of_an_offset_and_where_that_ends() -> None:
    epochs = EpochList([(1, 50), (2, 100)])
    assert epochs.at(49) is None
    assert [epochs.at(at) for at in (50, 99)] == [EpochStart(1, 50)] * 2
    assert [epochs.at(at) for at in (100, 10**9)] == [EpochStart(2, 100)] * 2
    assert [epochs.end_of(each, 300) for each in epochs.entries] == [100, 300]
    assert (epochs.last, epochs.last_epoch) == (EpochStart(2, 100), 2)
    assert (EpochList().last, EpochList().last_epoch) == (None, -1)


def test_it_keeps_no_more_epochs_than_a_master_of_rocketmq_can_send() -> None:
    epochs = EpochList()
    for number in range(EPOCHS_MAX + 5):
        epochs = epochs.added(number, 10 * number)
    assert len(epochs.entries) == EPOCHS_MAX
    assert epochs.entries[0] == EpochStart(5, 50)


@given(st.dictionaries(st.integers(0, 2**31 - 1), st.integers(0, 2**63 - 1), max_size=20))
def test_its_text_reads_back(rows: dict[int, int]) -> None:
    starts = sorted(rows.values())
    epochs = EpochList(zip(sorted(rows), starts, strict=True))
    assert EpochList.decode(epochs.encode()) == epochs
    assert EpochList.decode(epochs.encode().replace(b"\n", b"\r\n")) == epochs


def test_its_text_is_rocketmqs() -> None:
    """As the comment of RocketMQ's CheckpointFile gives it, with its very checksum."""
    text = b"2\n773307083\n7-7000\n8-8000\n"
    assert EpochList([(7, 7000), (8, 8000)]).encode() == text
    assert crc32(b"7-7000\n8-8000\n") & 0x7FFFFFFF == 773307083
    assert EpochList.decode(text) == EpochList([(7, 7000), (8, 8000)])
    assert EpochList.decode(text.replace(b"773307083", b"0")) == EpochList.decode(text)


@pytest.mark.parametrize(
    "text",
    [
        b"", b"x", b"1\n", b"2\n773307083\n7-7000\n", b"2\n773307084\n7-7000\n8-8000\n",
        b"2\n0\n8-8000\n7-7000\n", b"1\n0\n7\n", b"1\n0\n-7-70\n", b"1\n0\n7-x\n", b"\xff\xfe",
        b"1\n0\n99999999999-0\n",
    ],
)  # fmt: skip
def test_other_text_is_refused(text: bytes) -> None:
    with pytest.raises(StoreError, match="list of epochs"):
        EpochList.decode(text)
