"""What the demo of failover counts."""

from __future__ import annotations

from sprocket.demo.cluster.load import ClusterLoad


def test_the_longest_pause_includes_both_ends() -> None:
    load = ClusterLoad()
    load.acknowledged = [(1.0, 1), (2.0, 2), (6.0, 3), (6.5, 4)]
    assert load.longest_pause(1.5, 7.0) == 4.0
    assert load.longest_pause(6.2, 9.0) == 2.5
    assert load.longest_pause(2.5, 5.0) == 2.5
    assert load.count_between(2.0, 6.0) == [2, 3]
