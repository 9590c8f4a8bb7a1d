"""Queues as values."""

from __future__ import annotations

from sprocket.message.queue import QueueId


def test_queues_sort_by_topic_then_broker_then_number() -> None:
    queues = [
        QueueId("b", "x", 0),
        QueueId("a", "y", 10),
        QueueId("a", "y", 9),
        QueueId("a", "x", 1),
    ]
    assert sorted(queues) == [queues[3], queues[2], queues[1], queues[0]]
    assert str(queues[1]) == "a@y:10"
