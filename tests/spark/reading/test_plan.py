from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from sprocket.base.errors import ConfigError, RouteNotFound, SprocketError, UsageError
from sprocket.clientcore.witness import Witness
from sprocket.message.queue import QueueId
from sprocket.protocol.command import Command, Reply
from sprocket.protocol.requests.offset import MaxOffset
from sprocket.spark.options.loss import ReadFailed
from sprocket.spark.options.options import BatchOptions, read_options
from sprocket.spark.options.positions import format_offsets
from sprocket.spark.reading.plan import matching, plan_batch
from sprocket.spark.reading.ranges import Range
from tests.spark.support import BORN_MS, FakeBroker, Shelf, hang_up, record, serving

STORED_MS = BORN_MS + 1000


def queue(topic: str, broker: str, number: int) -> QueueId:
    return QueueId(topic, broker, number)


def shelf(first: int, end: int) -> Shelf:
    return Shelf([record(offset) for offset in range(first, end)], first)


@pytest.fixture
def broker() -> Iterator[FakeBroker]:
    shelves = {
        queue("orders", "broker-a", 0): shelf(0, 10),
        queue("orders", "broker-a", 1): shelf(5, 30),
        queue("returns", "broker-b", 0): shelf(0, 3),
        queue("returns", "broker-b", 1): shelf(4, 4),
    }
    with serving(FakeBroker(shelves)) as broker:
        yield broker


def planned(broker: FakeBroker, **given: str) -> list[str]:
    """All ranges of a plan, as text."""
    options = {"namesrvAddr": broker.address, "fetchOffset.retryIntervalMs": "1", **given}
    shares, addresses = plan_batch(read_options(options, BatchOptions))
    assert set(addresses.values()) <= {broker.address}
    return [str(one) for share in shares for one in share]


def test_everything_there_is_by_default(broker: FakeBroker) -> None:
    assert planned(broker, subscribe="orders,returns") == [
        "orders@broker-a:0 [0, 10)",
        "orders@broker-a:1 [5, 30)",
        "returns@broker-b:0 [0, 3)",
    ]


def test_topics_by_pattern_and_queues_by_number(broker: FakeBroker) -> None:
    assert planned(broker, subscribePattern="ret.*") == ["returns@broker-b:0 [0, 3)"]
    assert planned(broker, subscribePattern="r") == []
    assigned = '{"orders": {"broker-a": [1]}}'
    assert planned(broker, assign=assigned) == ["orders@broker-a:1 [5, 30)"]


def test_a_pattern_leaves_rocketmqs_own_topics_alone() -> None:
    names = ["orders", "%RETRY%g", "%DLQ%g", "TBW102", "rmq_sys_wheel_timer", "SELF_TEST_TOPIC"]
    assert matching(".*", names) == ["orders"]
    assert matching("%DLQ%.*", names) == ["%DLQ%g"]
    assert matching("rmq_sys_.*", names) == ["rmq_sys_wheel_timer"]


def test_a_topic_or_queue_that_does_not_exist_is_named(broker: FakeBroker) -> None:
    with pytest.raises(RouteNotFound, match="nothing"):
        planned(broker, subscribe="orders,nothing")
    with pytest.raises(ConfigError, match="orders@broker-a:7"):
        planned(broker, assign='{"orders": {"broker-a": [7]}}')


def test_offsets_by_number(broker: FakeBroker) -> None:
    found = planned(
        broker,
        subscribe="orders",
        startingOffsets='{"orders": {"broker-a": {"0": 3, "1": -2}}}',
        endingOffsets='{"orders": {"broker-a": {"0": -1, "1": 20}}}',
    )
    assert found == ["orders@broker-a:0 [3, 10)", "orders@broker-a:1 [5, 20)"]


def test_times_go_before_offsets(broker: FakeBroker) -> None:
    found = planned(
        broker,
        subscribe="orders",
        startingTimestamp=str(STORED_MS + 7),
        startingOffsets="latest",
        endingTimestamp=str(STORED_MS + 9),
    )
    assert found == ["orders@broker-a:0 [7, 9)", "orders@broker-a:1 [7, 9)"]
    found = planned(
        broker,
        subscribe="orders,returns",
        startingOffsetsByTimestamp=f'{{"orders": {STORED_MS + 8}, "returns": 0}}',
    )
    assert found[0] == "orders@broker-a:0 [8, 10)"
    assert found[2] == "returns@broker-b:0 [0, 3)"


def test_a_time_that_lies_ahead_begins_at_the_end_or_is_an_error(broker: FakeBroker) -> None:
    late = {"subscribe": "orders", "startingTimestamp": str(STORED_MS + 10)}
    assert planned(broker, **late) == ["orders@broker-a:1 [10, 30)"]
    with pytest.raises(ConfigError, match=r"orders@broker-a:0 has no message as new"):
        planned(broker, **late, startingOffsetsByTimestampStrategy="error")


def test_a_start_that_is_not_there_is_loss(
    broker: FakeBroker, caplog: pytest.LogCaptureFixture
) -> None:
    for offset in (2, 31):
        start = f'{{"orders": {{"broker-a": {{"0": 0, "1": {offset}}}}}}}'
        given = {"subscribe": "orders", "startingOffsets": start}
        with pytest.raises(ReadFailed, match=r"orders@broker-a:1 has offsets \[5, 30\)"):
            planned(broker, **given)
        planned(broker, **given, failOnDataLoss="false")
        assert f"{offset} was asked for" in caplog.text


def test_a_range_never_ends_before_it_begins(broker: FakeBroker) -> None:
    with pytest.raises(ConfigError, match="ends before it begins"):
        planned(
            broker,
            subscribe="orders",
            startingOffsets="latest",
            endingOffsets='{"orders": {"broker-a": {"0": 3, "1": 3}}}',
        )


def test_an_end_may_lie_ahead(broker: FakeBroker) -> None:
    end = '{"returns": {"broker-b": {"0": 9, "1": 4}}}'
    found = planned(broker, subscribe="returns", endingOffsets=end)
    assert found == ["returns@broker-b:0 [0, 9)"]


def test_partitions_as_asked(broker: FakeBroker) -> None:
    options = {"namesrvAddr": broker.address, "subscribe": "orders", "minPartitions": "5"}
    shares, _ = plan_batch(read_options(options, BatchOptions))
    assert [sum(one.records for one in share) for share in shares] == [7] * 5
    assert shares[1] == (
        Range(queue("orders", "broker-a", 0), 7, 10),
        Range(queue("orders", "broker-a", 1), 5, 9),
    )


def test_failures_that_pass_are_tried_again_as_often_as_asked(broker: FakeBroker) -> None:
    count = iter(range(100))

    def fault(request: Command) -> Reply | None:
        return hang_up if request.code == MaxOffset.code and next(count) < 3 else None

    broker.fault = fault
    assert len(planned(broker, subscribe="orders")) == 2
    count = iter(range(100))
    options = {"subscribe": "orders", "fetchOffset.numRetries": "1"}
    with pytest.raises(SprocketError, match=f"offsets cannot be read through {broker.address}"):
        planned(broker, **options)


def test_the_first_name_server_that_answers_is_asked(broker: FakeBroker) -> None:
    found = planned(broker, subscribe="returns", namesrvAddr=f"127.0.0.1:1;{broker.address}")
    assert found == ["returns@broker-b:0 [0, 3)"]


def test_a_read_begins_where_the_group_is(broker: FakeBroker) -> None:
    given = {"subscribe": "orders", "startingOffsets": "committed", "group": "readers"}
    broker.committed["readers", queue("orders", "broker-a", 0)] = 4
    # The other queue has none: it is read from its first message.
    assert planned(broker, **given) == ["orders@broker-a:0 [4, 10)", "orders@broker-a:1 [5, 30)"]
    with pytest.raises(ConfigError, match="needs a group that has committed"):
        planned(broker, subscribe="orders", startingOffsets="committed")


def test_a_read_begins_where_another_group_is(broker: FakeBroker) -> None:
    broker.committed["billing", queue("orders", "broker-a", 0)] = 4
    for group in ({}, {"group": "readers"}):
        found = planned(broker, subscribe="orders", startingOffsets="group:billing", **group)
        assert found == ["orders@broker-a:0 [4, 10)", "orders@broker-a:1 [5, 30)"]


def test_a_read_begins_where_another_query_is(broker: FakeBroker, tmp_path: Path) -> None:
    for folder in ("offsets", "commits"):
        (tmp_path / folder).mkdir()
    given = {"subscribe": "orders", "startingOffsets": f"checkpoint:{tmp_path}"}
    with pytest.raises(UsageError, match="none of its micro-batches is done"):
        planned(broker, **given)
    for batch, offset in ((6, 3), (7, 9)):  # the last one is not done
        shape = {"orders": {"broker-a": {"0": offset}}, "other": {"broker-a": {"0": 77}}}
        (tmp_path / f"offsets/{batch}").write_text(f"v1\n{{}}\n{json.dumps(shape)}")
    (tmp_path / "commits/6").write_text("v1\n{}")
    assert planned(broker, **given) == ["orders@broker-a:0 [3, 10)", "orders@broker-a:1 [5, 30)"]
    (tmp_path / "offsets/6").write_text(f"v1\n{{}}\n{json.dumps(shape)}\n{json.dumps(shape)}")
    with pytest.raises(UsageError, match="has 2 RocketMQ sources"):
        planned(broker, **given)


@pytest.mark.parametrize("committed", [99, 2])
def test_a_group_outside_of_its_queue_is_loss(broker: FakeBroker, committed: int) -> None:
    given = {
        "assign": '{"orders": {"broker-a": [1]}}',
        "startingOffsets": "committed",
        "group": "readers",
    }
    broker.committed["readers", queue("orders", "broker-a", 1)] = committed
    with pytest.raises(ReadFailed, match=f"and {committed} was asked for"):
        planned(broker, **given)
    # What is there now was not read by the group, wherever it stood in what was there before.
    assert planned(broker, **given, failOnDataLoss="false") == ["orders@broker-a:1 [5, 30)"]


def test_a_negative_committed_offset_is_none(broker: FakeBroker) -> None:
    broker.committed["readers", queue("orders", "broker-a", 0)] = -1
    given = {"subscribe": "orders", "startingOffsets": "committed", "group": "readers"}
    assert planned(broker, **given)[0] == "orders@broker-a:0 [0, 10)"


def test_offsets_of_a_checkpoint_recognise_their_queues(broker: FakeBroker) -> None:
    first, second = queue("orders", "broker-a", 0), queue("orders", "broker-a", 1)
    text = format_offsets({first: 6, second: 20}, {second: Witness(19, 1900, STORED_MS + 19)})
    given = {"subscribe": "orders", "startingOffsets": text}
    assert planned(broker, **given) == ["orders@broker-a:0 [6, 10)", "orders@broker-a:1 [20, 30)"]
    again = [record(n, log_offset=10**6 + n, stored_ms=STORED_MS + 10**6) for n in range(40)]
    broker.shelves[second] = Shelf(list(again))
    with pytest.raises(ReadFailed, match=r"orders@broker-a:1.*made anew"):
        planned(broker, **given)
    found = planned(broker, **given, failOnDataLoss="false")
    assert found == ["orders@broker-a:0 [6, 10)", "orders@broker-a:1 [0, 40)"]
