"""How far committed offsets went back, as the demo of failover finds it."""

from __future__ import annotations

from sprocket.demo.cluster.observer import GroupObserver


def test_the_setback_is_what_was_committed_and_is_committed_again() -> None:
    observer = GroupObserver("127.0.0.1:1")
    for now, first, second in [(1.0, 10, 5), (2.0, 20, 5), (3.0, 30, 9), (4.0, 15, 9)]:
        observer.note({0: first, 1: second}, now)
    assert observer.setback == (15, 1.0)
    observer.note({0: 40, 1: 8}, 5.0)
    assert observer.setback == (15, 1.0)


def test_what_only_rises_is_no_setback() -> None:
    observer = GroupObserver("127.0.0.1:1")
    for offset in (1, 1, 5):
        observer.note({0: offset}, float(offset))
    assert observer.setback == (0, 0.0)
