"""What a broker's own parts read although readers do not see it yet."""

from __future__ import annotations

from dataclasses import replace

from sprocket.store.reading.queue_reader import ReadStatus
from sprocket.testing.disk import FaultyDisk
from tests.store.making import SMALL, a_draft, bodies, opened
from tests.support import run


def test_they_have_what_is_not_safe_yet() -> None:
    store = run(opened(FaultyDisk(1), config=replace(SMALL, flush="SYNC_FLUSH")))
    store.append_batch([a_draft(b"%d" % count) for count in range(3)])
    assert bodies(store) == []
    assert store.stored.max_offset("orders", 0) == 3
    found = store.stored.read("orders", 0, 1, count_max=9, bytes_max=9999)
    assert [record.body for record in found.records()] == [b"1", b"2"]


def test_a_queue_that_is_not_there_has_nothing() -> None:
    stored = run(opened(FaultyDisk(1))).stored
    assert stored.max_offset("nothing", 0) == 0
    found = stored.read("nothing", 0, 0, count_max=9, bytes_max=9999)
    assert found.status is ReadStatus.NO_MESSAGE_IN_QUEUE
