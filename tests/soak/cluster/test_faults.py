"""What the faults of a soak come to."""

from __future__ import annotations

from sprocket.demo.cluster.observer import Setback
from tests.soak.cluster.faults import FaultCost, by_kind


def test_faults_are_counted_by_kind_with_their_median_and_worst() -> None:
    costs = [
        FaultCost("kill broker", 1.0, Setback(3, 0.2)),
        FaultCost("kill broker", 9.0, Setback(0, 0.0)),
        FaultCost("kill broker", 2.0, Setback(1, 0.7)),
        FaultCost("kill etcd", 0.1, Setback()),
    ]
    assert by_kind(costs) == [
        ("kill broker", 3, 2.0, 9.0, Setback(3, 0.2)),
        ("kill etcd", 1, 0.1, 0.1, Setback()),
    ]
