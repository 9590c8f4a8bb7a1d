from __future__ import annotations

import pytest

from sprocket.base.errors import CorruptRecord
from sprocket.message.hosts import pack
from sprocket.message.record import Draft, Encoder, Record, parse, topic_part
from sprocket.transaction.staged import (
    StagedDecision,
    StagedHead,
    decided,
    decision_of,
    head_of,
    mark_of,
    staged,
)

HOST = pack("10.0.0.1:10911")
HEAD = StagedHead("w", "ann", 7, "a", 3, "T", 1, 20)
DECISION = StagedDecision(
    "w", "ann", 7, [("a", 4)], 80, False, 1000, 60_000, 5, 6, "first", [("b", [("a", 2)])]
)


def stored(draft: Draft, log_offset: int = 0) -> Record:
    part = topic_part(draft.topic.encode())
    return parse(Encoder(HOST).encode(draft, part, log_offset, 0, 0))


def test_a_record_says_what_it_was_made_from() -> None:
    record = stored(staged(HEAD, b"body", born_ms=5, born_host=HOST))
    assert (head_of(record), bytes(record.body), record.born_ms) == (HEAD, b"body", 5)
    assert decision_of(stored(decided(DECISION, host=HOST))) == DECISION


def test_a_mark_is_never_that_of_an_ordinary_message() -> None:
    """Those have 0 there, or where the record of which they were made begins."""
    record = stored(staged(HEAD, b"", born_ms=5, born_host=HOST), log_offset=0)
    assert 0 < mark_of(record) < record.size


def test_other_records_are_refused() -> None:
    other = stored(Draft("T", 0, b"[]", b"", 0, 0, 0, 0, HOST))
    with pytest.raises(CorruptRecord):
        head_of(other)
    with pytest.raises(CorruptRecord):
        decision_of(other)
