"""Which topics have batch queues."""

from __future__ import annotations

import pytest

from sprocket.store.state.queue_kinds import QueueKinds
from sprocket.testing.disk import MemoryDisk
from tests.store.batches import TOPIC, disk_with_topic
from tests.store.making import ROOT


def test_the_broker_s_file_says_it_and_later_calls_change_it() -> None:
    kinds = QueueKinds(disk_with_topic(), ROOT)
    assert not kinds.is_batch(TOPIC)
    kinds.load()
    assert kinds.is_batch(TOPIC)
    assert not kinds.is_batch("other")
    kinds.set(TOPIC, is_batch=False)
    kinds.set("other", is_batch=True)
    assert (kinds.is_batch(TOPIC), kinds.is_batch("other")) == (False, True)


@pytest.mark.parametrize(
    "raw",
    [b"", b"{", b"[]", b'{"topicConfigTable":[]}', b'{"topicConfigTable":{"packs":1}}',
     b'{"topicConfigTable":{"packs":{"attributes":{"queue.type":["BatchCQ"]}}}}'],
)  # fmt: skip
def test_a_file_of_another_form_says_nothing(raw: bytes) -> None:
    disk = MemoryDisk()
    disk.make_directory(f"{ROOT}/config")
    disk.replace(f"{ROOT}/config/topics.json", raw, backup=False)
    kinds = QueueKinds(disk, ROOT)
    kinds.load()
    assert not kinds.is_batch(TOPIC)
