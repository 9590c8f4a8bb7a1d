"""The table of static topics."""

from __future__ import annotations

import pytest

from sprocket.base.errors import InvalidParameter, SystemFailure
from sprocket.broker.tables.queue_mappings import QUEUES_MAX, QueueMappings
from sprocket.protocol.bodies import MappingDetail, MappingItem
from sprocket.store.state.snapshot import decode_state, encode_state
from sprocket.testing.clock import ManualClock

DETAIL = MappingDetail(
    bname="a",
    epoch=3,
    hosted_queues={0: [MappingItem(bname="a", queue_id=1)]},
    topic="T",
    total_queues=1,
)


def table() -> tuple[QueueMappings, list[str]]:
    changes: list[str] = []
    return QueueMappings("a", ManualClock(), on_change=changes.append), changes


def test_a_mapping_is_kept_as_rocketmq_keeps_it() -> None:
    mappings, changes = table()
    mappings.put(DETAIL, is_forced=False)
    text = encode_state(mappings.to_json())
    assert '"topicQueueMappingInfoMap"' in text
    loaded, _ = table()
    loaded.load(decode_state(text))
    assert loaded.by_topic == {"T": DETAIL}
    assert loaded.version == mappings.version
    assert changes == ["T"]


def test_what_is_refused_changes_nothing() -> None:
    mappings, changes = table()
    with pytest.raises(InvalidParameter):
        mappings.put(
            MappingDetail(bname="a", topic="T", total_queues=QUEUES_MAX + 1), is_forced=True
        )
    named = MappingDetail(bname="a", scope="x" * 256, topic="T", total_queues=1)
    far = MappingItem(bname="x" * 256)
    held = MappingDetail(bname="a", hosted_queues={0: [far]}, topic="T", total_queues=1)
    many = MappingDetail(
        bname="a", hosted_queues={0: [MappingItem(bname="a")] * 70_000}, topic="T", total_queues=1
    )
    for wrong in (named, held, many):
        with pytest.raises(InvalidParameter):
            mappings.put(wrong, is_forced=True)
    with pytest.raises(SystemFailure):
        mappings.put(MappingDetail(bname="b", topic="T"), is_forced=False)
    assert not mappings.by_topic
    assert not changes


def test_a_slave_has_what_its_master_has() -> None:
    mappings, changes = table()
    mappings.copy("T", DETAIL)
    mappings.copy("T", DETAIL)
    assert mappings.get("T") == DETAIL
    mappings.copy("T", None)
    assert mappings.get("T") is None
    assert changes == ["T", "T"]


def test_mappings_of_deleted_topics_go() -> None:
    mappings, _ = table()
    mappings.put(DETAIL, is_forced=False)
    mappings.keep(["T"])
    assert mappings.by_topic
    mappings.keep(["other"])
    assert not mappings.by_topic
