"""Replies to pulls, in logical offsets."""

from __future__ import annotations

import pytest

from sprocket.broker.logical.pulled import PartRead, shown
from sprocket.protocol.bodies import MappingItem
from sprocket.protocol.requests.pull import PullReply

FOUND, NOT_FOUND, RETRY, MOVED = 0, 19, 20, 21
#: Three parts, of which the last takes messages, and one that is not decided.
PARTS = [
    MappingItem(bname="a", gen=0),
    MappingItem(bname="b", gen=1, logic_offset=10_000),
    MappingItem(bname="a", gen=2, logic_offset=20_000, queue_id=1),
]
UNDECIDED = [PARTS[0], MappingItem(bname="b", gen=1, logic_offset=-1)]


def reply(following: int, low: int, high: int) -> PullReply:
    return PullReply(
        suggest_which_broker_id=0, next_begin_offset=following, min_offset=low, max_offset=high
    )


@pytest.mark.parametrize(
    ("gen", "offset", "code", "given", "expected"),
    [
        (0, 3, FOUND, (5, 0, 9), (FOUND, 5)),
        (2, 3, FOUND, (5, 0, 9), (FOUND, 20_005)),
        # The end of a part that is not the last one.
        (0, 9, NOT_FOUND, (9, 0, 9), (RETRY, 10_000)),
        (0, 50, MOVED, (9, 0, 9), (RETRY, 10_000)),
        (1, 9, NOT_FOUND, (9, 0, 9), (RETRY, 20_000)),
        (0, 0, NOT_FOUND, (0, 0, 0), (RETRY, 10_000)),
        # Messages were removed.
        (0, 3, MOVED, (5, 5, 9), (MOVED, 5)),
        (1, 3, MOVED, (5, 5, 9), (RETRY, 10_005)),
        (2, 3, MOVED, (5, 5, 9), (RETRY, 20_005)),
        # Nothing matches, or a slave knows no better.
        (0, 3, RETRY, (7, 0, 9), (RETRY, 7)),
        (1, 3, MOVED, (0, 0, 9), (RETRY, 10_000)),
        # The last part.
        (2, 9, NOT_FOUND, (9, 0, 9), (NOT_FOUND, 20_009)),
        (2, 12, MOVED, (9, 0, 9), (MOVED, 20_009)),
    ],
)
def test_a_reader_goes_on_in_the_next_part(
    gen: int, offset: int, code: int, given: tuple[int, int, int], expected: tuple[int, int]
) -> None:
    header, shown_code = shown(PartRead(PARTS, PARTS[gen], offset), reply(*given), code)
    assert (shown_code, header.next_begin_offset) == expected


def test_a_reader_waits_where_the_next_part_is_not_decided() -> None:
    header, code = shown(PartRead(UNDECIDED, UNDECIDED[0], 12), reply(9, 0, 9), MOVED)
    assert (code, header.next_begin_offset) == (NOT_FOUND, 12)


def test_messages_carry_the_offsets_of_their_queue() -> None:
    header, _ = shown(PartRead(PARTS, PARTS[1], 0), reply(4, 0, 4), FOUND)
    assert header.offset_delta == 10_000
    assert (header.min_offset, header.max_offset) == (10_000, 20_000)
