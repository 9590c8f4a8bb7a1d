from __future__ import annotations

import pytest

from sprocket.base.errors import TransportError
from sprocket.message.queue import QueueId
from sprocket.spark.brokers.cluster import ClusterMetadata
from sprocket.spark.brokers.pool import ConnectionPool
from tests.spark.support import FakeBroker, Shelf, serving

QUEUE = QueueId("t", "broker-a", 0)


def test_after_a_failure_the_next_attempt_goes_to_the_new_master() -> None:
    old = {"broker-a": "127.0.0.1:1"}
    server = FakeBroker({QUEUE: Shelf()})
    with serving(server), ConnectionPool([server.address], addresses=old) as pool:
        cluster = ClusterMetadata(pool)
        with pytest.raises(TransportError):
            cluster.earliest([QUEUE])
        assert cluster.earliest([QUEUE]) == {QUEUE: 0}
