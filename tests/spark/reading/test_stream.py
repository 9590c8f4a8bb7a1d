from __future__ import annotations

from collections.abc import Iterator

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed: pip install 'sprocketmq[spark]'")

from sprocket.base.errors import ConfigError, TransportError
from sprocket.message.queue import QueueId
from sprocket.protocol.command import Command, Reply
from sprocket.protocol.requests.offset import MaxOffset
from sprocket.spark.options.loss import ReadFailed
from sprocket.spark.options.options import StreamOptions, read_options
from sprocket.spark.reading.stream import StreamPlan
from tests.spark.support import FakeBroker, Shelf, hang_up, record, serving

A0 = QueueId("orders", "broker-a", 0)
A1 = QueueId("orders", "broker-a", 1)
B0 = QueueId("orders", "broker-b", 0)


def shelf(first: int, end: int) -> Shelf:
    return Shelf([record(offset) for offset in range(first, end)], first)


@pytest.fixture
def broker() -> Iterator[FakeBroker]:
    with serving(FakeBroker({A0: shelf(0, 10), B0: shelf(5, 8)})) as broker:
        yield broker


def plan(broker: FakeBroker, **given: str) -> StreamPlan:
    options = {"namesrvAddr": broker.address, "subscribe": "orders", "routeRefreshMs": "0"}
    quick = {"fetchOffset.retryIntervalMs": "1", "fetchOffset.numRetries": "1"}
    return StreamPlan(read_options({**options, **quick, **given}, StreamOptions))


def ranges(made: StreamPlan, start: dict[QueueId, int], end: dict[QueueId, int]) -> list[str]:
    return [str(one) for part in made.partitions(start, end) for one in part.share]


def test_a_new_stream_begins_with_what_comes_from_now_on(broker: FakeBroker) -> None:
    assert plan(broker).initial() == {A0: 10, B0: 8}
    assert plan(broker, startingOffsets="earliest").initial() == {A0: 0, B0: 5}


def test_a_batch_reads_what_has_come_since_the_last(broker: FakeBroker) -> None:
    made = plan(broker)
    start = made.initial()
    assert made.next(start, None) == start
    broker.shelves[A0].records += [record(10), record(11)]
    end = made.next(start, None)
    assert end == {A0: 12, B0: 8}
    assert made.latest == end
    assert ranges(made, start, end) == ["orders@broker-a:0 [10, 12)"]


def test_a_limit_is_shared_by_what_waits(broker: FakeBroker) -> None:
    made = plan(broker)
    start = {A0: 0, B0: 5}
    end = made.next(start, 5)
    assert sum(end[queue] - start[queue] for queue in end) == 5
    assert end[A0] > 2
    assert end[B0] > 5


def test_a_queue_that_is_new_is_read_from_its_first_message(broker: FakeBroker) -> None:
    made = plan(broker)
    start = made.initial()
    broker.shelves[A1] = shelf(100, 103)
    end = made.next(start, 2)
    assert end == {A0: 10, A1: 102, B0: 8}
    assert ranges(made, start, end) == ["orders@broker-a:1 [100, 102)"]


def test_a_broker_that_is_away_stands_still_and_the_others_go_on(broker: FakeBroker) -> None:
    made = plan(broker)
    start = {A0: 3, B0: 6}
    fault = Reply(code=1, remark="away")

    def away(request: Command) -> Reply | None:
        is_b = request.code == MaxOffset.code and request.fields["bname"] == "broker-b"
        return fault if is_b else None

    broker.fault = away
    assert made.next(start, None) == {A0: 10, B0: 6}
    del broker.shelves[B0]
    broker.fault = lambda _: None
    assert made.next(start, None) == {A0: 10, B0: 6}


def test_a_cluster_that_is_away_is_waited_for(broker: FakeBroker) -> None:
    made = plan(broker)
    broker.fault = lambda _: hang_up
    assert made.next({A0: 3, B0: 6}, None) == {A0: 3, B0: 6}
    broker.fault = lambda _: None
    assert made.next({A0: 3, B0: 6}, None) == {A0: 10, B0: 8}


def test_available_now_ends_with_what_was_there(broker: FakeBroker) -> None:
    made = plan(broker)
    made.set_target()
    broker.shelves[A0].records.append(record(10))
    broker.shelves[A1] = shelf(0, 4)
    start = {A0: 0, B0: 5}
    end = made.next(start, 8)
    while end != start:
        start, end = end, made.next(end, 8)
    assert end == {A0: 10, B0: 8}


def test_available_now_does_not_end_early_because_the_cluster_is_away(broker: FakeBroker) -> None:
    made = plan(broker)
    made.set_target()
    broker.fault = lambda _: hang_up
    with pytest.raises(TransportError):
        made.next({A0: 0, B0: 5}, None)


def test_a_queue_that_became_shorter_is_loss(broker: FakeBroker) -> None:
    start = {A0: 50, B0: 8}
    with pytest.raises(ReadFailed, match=r"orders@broker-a:0: it ends at 10.*up to 50"):
        plan(broker).next(start, None)
    assert plan(broker, failOnDataLoss="false").next(start, None) == {A0: 10, B0: 8}


def test_too_few_are_waited_for_but_not_for_ever(broker: FakeBroker) -> None:
    start = {A0: 8, B0: 8}
    given = {"minOffsetsPerTrigger": "3"}
    assert plan(broker, **given).next(start, None) == start
    broker.shelves[A0].records.append(record(10))
    assert plan(broker, **given).next(start, None) == {A0: 11, B0: 8}
    hurried = plan(broker, minOffsetsPerTrigger="99", maxTriggerDelay="0ms")
    assert hurried.next(start, None) == {A0: 11, B0: 8}


def test_a_group_is_told_what_is_done_and_only_that(broker: FakeBroker) -> None:
    made = plan(broker, group="archive")
    start = {A0: 2, B0: 6}
    end = made.next(start, None)
    assert broker.committed == {}
    made.done(start)
    assert broker.committed == {("archive", A0): 2, ("archive", B0): 6}
    # The last batch of a query is only ever told of as the start of the next.
    made.next(end, None)
    assert broker.committed == {("archive", A0): 10, ("archive", B0): 8}


def test_without_a_group_nothing_is_committed(broker: FakeBroker) -> None:
    made = plan(broker)
    end = made.next({A0: 2, B0: 6}, None)
    made.done(end)
    made.next(end, None)
    assert broker.committed == {}


def test_after_a_restart_the_first_batch_is_planned_from_the_checkpoint(broker: FakeBroker) -> None:
    made = plan(broker)
    (part,) = made.partitions({A0: 2, B0: 6}, {A0: 4, B0: 6})
    assert [str(one) for one in part.share] == ["orders@broker-a:0 [2, 4)"]
    assert part.addresses["broker-a"] == broker.address


def test_options_of_batch_reads_are_refused() -> None:
    with pytest.raises(ConfigError, match="endingOffsets is not for streams"):
        read_options(
            {"namesrvAddr": "a:1", "subscribe": "o", "endingoffsets": "latest"}, StreamOptions
        )
