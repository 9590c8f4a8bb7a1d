"""The history is bounded in names, and forgets groups that nobody watches."""

from __future__ import annotations

from sprocket.admin.brokers import BrokerProcess
from sprocket.admin.positions import QueueLag
from sprocket.console.history.history import ClusterHistory


def process(name: str, number: int = 0) -> BrokerProcess:
    return BrokerProcess("c", name, number, "h:1", True, {"putTps": "5 5 5"})


def test_each_process_has_its_line() -> None:
    history = ClusterHistory()
    history.add_brokers(10_000, [process("a"), process("a", 1)])
    assert history.of_figure("put", 0, 20_000) == {"a": [(10_000, 5.0)], "a · 1": [(10_000, 5.0)]}
    assert history.of_figure("disk", 0, 20_000) == {}


def test_names_are_bounded_and_old_ones_are_forgotten() -> None:
    history = ClusterHistory()
    history.add_brokers(10_000, [process(f"b{number}") for number in range(2_000)])
    assert len(history.of_figure("put", 0, 20_000)) == 500
    later = 10_000 + 15 * 86_400_000
    history.add_brokers(later, [process("new")])
    history.add_brokers(later + 10_000, [process("new")])
    assert list(history.of_figure("put", 0, later + 20_000)) == ["new"]


def test_lag_is_kept_by_queue_as_long_as_it_is_watched() -> None:
    history = ClusterHistory()
    queues = [QueueLag("t", "a", number, 3, 10, 3, 0) for number in range(1_000)]
    history.add_lag(10_000, "g", queues)
    lines = history.of_group("g", 0, 20_000)
    assert lines["t a:0"] == [(10_000, 7.0)]
    assert len(lines) == 256
    history.forget_groups({})
    assert history.of_group("g", 0, 20_000) == {}
