"""Topics as rows."""

from __future__ import annotations

from datetime import UTC, datetime

from sprocket.console.operations.topics import (
    QueueSpan,
    TopicAtBroker,
    TopicDescribed,
    TopicVolumes,
    VolumeOf,
)
from sprocket.console.views.topics import queue_rows, setting_rows, volume_rows


def test_a_queue_s_row_counts_its_messages() -> None:
    span = QueueSpan(
        broker="a", queue=3, min_offset=1_000, max_offset=6_000,
        updated_at=datetime.fromtimestamp(940, UTC),
    )  # fmt: skip
    (row,) = queue_rows([span], 1_000_000)
    assert (row["messages"], row["messages_text"], row["last_text"]) == (
        5_000, "5\u202f000", "1 min ago",
    )  # fmt: skip


def test_settings_are_in_words() -> None:
    at = TopicAtBroker(
        broker="a", read_queues=4, write_queues=2, permission="rw",
        attributes={"+message.type": "FIFO"},
    )  # fmt: skip
    (row,) = setting_rows(TopicDescribed(topic="t", brokers=[at], groups=[]))
    assert (row["permission"], row["attributes"]) == ("read, write", "message.type=FIFO")


def test_volumes_name_their_group() -> None:
    found = TopicVolumes(
        topic="t",
        volumes=[
            VolumeOf(group=None, minute=1, hour=2_000, day=3, per_second=0.5),
            VolumeOf(group="g", minute=0, hour=0, day=0, per_second=0),
        ],
    )
    sent, got = volume_rows(found)
    assert (sent["who"], sent["hour_text"], sent["rate_text"]) == (
        "sent to the topic", "2\u202f000", "0.5/s",
    )  # fmt: skip
    assert got["who"] == "g"
