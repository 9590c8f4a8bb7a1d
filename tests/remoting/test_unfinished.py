"""The bound on incomplete frames over all connections."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sprocket.remoting.unfinished import COUNTED_BYTES_MIN, UnfinishedFrames

MIB = 1 << 20


class Sender:
    """A connection that notes whether it was closed."""

    def __init__(self, name: str) -> None:
        self.address = name
        self.is_closed = False

    def abort(self) -> None:
        self.is_closed = True


def test_the_frame_that_is_incomplete_for_longest_goes_first() -> None:
    frames = UnfinishedFrames(4 * MIB)
    first, second, third = (Sender(name) for name in "abc")
    frames.note(first, MIB)
    frames.note(second, 2 * MIB)
    frames.note(first, 2 * MIB)
    assert not first.is_closed
    frames.note(third, MIB)
    assert [each.is_closed for each in (first, second, third)] == [True, False, False]


def test_a_completed_frame_gives_its_room_back_and_the_next_one_is_young() -> None:
    frames = UnfinishedFrames(4 * MIB)
    busy, slow = Sender("busy"), Sender("slow")
    frames.note(busy, 2 * MIB)
    frames.note(slow, MIB)
    for _ in range(10):
        frames.note(busy, 0)
        frames.note(busy, MIB)
        frames.note(busy, 2 * MIB)
    assert not slow.is_closed
    frames.note(Sender("new"), 2 * MIB)
    assert slow.is_closed
    assert not busy.is_closed


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3 * MIB)), max_size=60))
def test_all_together_never_keep_more(steps: list[tuple[int, int]]) -> None:
    frames = UnfinishedFrames(4 * MIB)
    senders = [Sender(str(at)) for at in range(6)]
    kept = dict.fromkeys(senders, 0)
    for at, size in steps:
        sender = senders[at]
        if sender.is_closed:
            continue
        kept[sender] = size if size >= COUNTED_BYTES_MIN else 0
        frames.note(sender, size)
        for each in senders:
            if each.is_closed:
                kept[each] = 0
        assert sum(kept.values()) <= 4 * MIB
