from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed: pip install 'sprocketmq[spark]'")

from sprocket.base.errors import ConfigError, TransportError
from sprocket.clientcore.witness import Witness
from sprocket.message.queue import QueueId
from sprocket.protocol.command import Command, Reply
from sprocket.protocol.requests.offset import MaxOffset, OffsetReply, SearchOffset
from sprocket.protocol.requests.pull import PullMessage
from sprocket.spark.options.checkpoint import (
    StreamOffsets,
    read_checkpoint,
    shape_checkpoint,
)
from sprocket.spark.options.loss import ReadFailed
from sprocket.spark.options.options import StreamOptions, read_options
from sprocket.spark.reading.stream import StreamPlan
from tests.spark.support import BORN_MS, FakeBroker, Shelf, hang_up, record, serving

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


def ends(
    made: StreamPlan, start: dict[QueueId, int], most: int | None = None
) -> dict[QueueId, int]:
    return made.next(StreamOffsets(start), most).next


def ranges(made: StreamPlan, start: StreamOffsets, end: StreamOffsets) -> list[str]:
    return [str(one) for part in made.partitions(start, end) for one in part.share]


def test_a_new_stream_begins_with_what_comes_from_now_on(broker: FakeBroker) -> None:
    assert plan(broker).initial() == StreamOffsets({A0: 10, B0: 8})
    assert plan(broker, startingOffsets="earliest").initial().next == {A0: 0, B0: 5}


def test_a_batch_reads_what_has_come_since_the_last(broker: FakeBroker) -> None:
    made = plan(broker)
    start = made.initial()
    assert made.next(start, None) == start
    broker.shelves[A0].records += [record(10), record(11)]
    end = made.next(start, None)
    assert end.next == {A0: 12, B0: 8}
    assert made.latest == end.next
    assert ranges(made, start, end) == ["orders@broker-a:0 [10, 12)"]


def test_a_limit_of_bytes_counts_records_as_they_are_stored(broker: FakeBroker) -> None:
    broker.shelves[A0] = Shelf([record(offset, body=bytes(2_000)) for offset in range(400)])
    broker.shelves[B0] = Shelf([record(offset, body=bytes(2_000)) for offset in range(200)])
    made, each = plan(broker), len(record(0, body=bytes(2_000)))
    start = StreamOffsets({A0: 0, B0: 0})

    def read(records_max: int | None, bytes_max: int) -> dict[QueueId, int]:
        return made.next(start, records_max, bytes_max).next

    assert read(None, 300 * each) == {A0: 199, B0: 101}
    assert sum(read(30, 300 * each).values()) == 30
    assert sum(read(550, 300 * each).values()) == 300
    assert sum(read(None, 1).values()) == 1


def test_a_broker_that_gives_no_sizes_holds_nothing_up(broker: FakeBroker) -> None:
    broker.fault = lambda command: hang_up if command.code == PullMessage.code else None
    largest = 4 << 20
    found = plan(broker).next(StreamOffsets({A0: 0, B0: 5}), None, 5 * largest).next
    assert found == {A0: 3, B0: 7}


def test_a_limit_is_shared_by_what_waits(broker: FakeBroker) -> None:
    made = plan(broker)
    start = {A0: 0, B0: 5}
    end = ends(made, start, 5)
    assert sum(end[queue] - start[queue] for queue in end) == 5
    assert end[A0] > 2
    assert end[B0] > 5


def test_a_queue_that_is_new_is_read_from_its_first_message(broker: FakeBroker) -> None:
    made = plan(broker)
    start = made.initial()
    broker.shelves[A1] = shelf(100, 103)
    end = made.next(start, 2)
    assert end.next == {A0: 10, A1: 102, B0: 8}
    assert ranges(made, start, end) == ["orders@broker-a:1 [100, 102)"]


def test_a_broker_that_is_away_stands_still_and_the_others_go_on(broker: FakeBroker) -> None:
    made = plan(broker)
    start = {A0: 3, B0: 6}
    fault = Reply(code=1, remark="away")

    def away(request: Command) -> Reply | None:
        is_b = request.code == MaxOffset.code and request.fields["bname"] == "broker-b"
        return fault if is_b else None

    broker.fault = away
    assert ends(made, start) == {A0: 10, B0: 6}
    del broker.shelves[B0]
    broker.fault = lambda _: None
    assert ends(made, start) == {A0: 10, B0: 6}


def test_a_cluster_that_is_away_is_waited_for(broker: FakeBroker) -> None:
    made = plan(broker)
    broker.fault = lambda _: hang_up
    assert ends(made, {A0: 3, B0: 6}) == {A0: 3, B0: 6}
    broker.fault = lambda _: None
    assert ends(made, {A0: 3, B0: 6}) == {A0: 10, B0: 8}


def test_available_now_ends_with_what_was_there(broker: FakeBroker) -> None:
    made = plan(broker)
    made.set_target()
    broker.shelves[A0].records.append(record(10))
    broker.shelves[A1] = shelf(0, 4)
    start = StreamOffsets({A0: 0, B0: 5})
    end = made.next(start, 8)
    while end != start:
        start, end = end, made.next(end, 8)
    assert end.next == {A0: 10, B0: 8}


def test_available_now_does_not_end_early_because_the_cluster_is_away(broker: FakeBroker) -> None:
    made = plan(broker)
    made.set_target()
    broker.fault = lambda _: hang_up
    with pytest.raises(TransportError):
        ends(made, {A0: 0, B0: 5})


def test_a_queue_that_became_shorter_is_loss(broker: FakeBroker) -> None:
    start = {A0: 50, B0: 8}
    with pytest.raises(ReadFailed, match=r"orders@broker-a:0: it ends at 10.*up to 50"):
        ends(plan(broker), start)


def test_too_few_are_waited_for_but_not_for_ever(broker: FakeBroker) -> None:
    start = {A0: 8, B0: 8}
    given = {"minOffsetsPerTrigger": "3"}
    assert ends(plan(broker, **given), start) == start
    broker.shelves[A0].records.append(record(10))
    assert ends(plan(broker, **given), start) == {A0: 11, B0: 8}
    hurried = plan(broker, minOffsetsPerTrigger="99", maxTriggerDelay="0ms")
    assert ends(hurried, start) == {A0: 11, B0: 8}


def test_a_group_is_told_what_is_done_and_only_that(broker: FakeBroker) -> None:
    made = plan(broker, group="archive")
    start = StreamOffsets({A0: 2, B0: 6})
    end = made.next(start, None)
    assert broker.committed == {("archive", A0): 2, ("archive", B0): 6}
    # The last batch of a query is only ever told of as the start of the next.
    made.next(end, None)
    assert broker.committed == {("archive", A0): 10, ("archive", B0): 8}


def test_without_a_group_nothing_is_committed(broker: FakeBroker) -> None:
    made = plan(broker)
    end = made.next(StreamOffsets({A0: 2, B0: 6}), None)
    made.done(end)
    made.next(end, None)
    assert broker.committed == {}


def test_after_a_restart_the_first_batch_is_planned_from_the_checkpoint(broker: FakeBroker) -> None:
    made = plan(broker)
    (part,) = made.partitions(StreamOffsets({A0: 2, B0: 6}), StreamOffsets({A0: 4, B0: 6}))
    assert [str(one) for one in part.share] == ["orders@broker-a:0 [2, 4)"]
    assert part.addresses["broker-a"] == broker.address


def test_options_of_batch_reads_are_refused() -> None:
    with pytest.raises(ConfigError, match="endingOffsets is not for streams"):
        read_options(
            {"namesrvAddr": "a:1", "subscribe": "o", "endingoffsets": "latest"}, StreamOptions
        )


def anew(first: int, end: int, *, log: int = 50_000, later_ms: int = 60_000) -> Shelf:
    """A queue of a topic that was made again: stored later, further on in the same log."""
    return Shelf(
        [
            record(offset, log_offset=log + offset, stored_ms=BORN_MS + later_ms + offset)
            for offset in range(first, end)
        ],
        first,
    )


def read_up(broker: FakeBroker) -> StreamOffsets:
    """The offsets of a query that has read all there is, as its checkpoint keeps them."""
    end = plan(broker).next(StreamOffsets({A0: 0, B0: 5}), None)
    assert end.witnesses[A0] == Witness(9, 900, BORN_MS + 1009)
    kept = read_checkpoint(json.loads(json.dumps(shape_checkpoint(end))))
    assert kept == end
    return kept


@pytest.mark.parametrize("count", [4, 10, 25], ids=["fewer", "equal", "more"])
def test_a_topic_that_was_made_anew_is_not_taken_for_the_old_one(
    broker: FakeBroker, count: int, caplog: pytest.LogCaptureFixture
) -> None:
    done = read_up(broker)
    broker.shelves[A0] = anew(0, count)
    with pytest.raises(ReadFailed, match=r"orders@broker-a:0.*made anew.*failOnDataLoss"):
        plan(broker).next(done, None)
    made = plan(broker, failOnDataLoss="false")
    end = made.next(done, None)
    assert end.next == {A0: count, B0: 8}
    assert ranges(made, done, end) == [f"orders@broker-a:0 [0, {count})"]
    assert "orders@broker-a:0" in caplog.text
    assert "was not read is lost" in caplog.text
    # The next one goes on behind it, and another process plans the same from the checkpoint.
    assert made.next(end, None) == end
    kept = read_checkpoint(json.loads(json.dumps(shape_checkpoint(end))))
    assert ranges(plan(broker), done, kept) == [f"orders@broker-a:0 [0, {count})"]


def test_of_a_topic_made_anew_the_limited_batches_leave_nothing_out(broker: FakeBroker) -> None:
    done = read_up(broker)
    broker.shelves[A0] = anew(0, 25)
    made = plan(broker, failOnDataLoss="false")
    read = []
    start, end = done, made.next(done, 10)
    while end != start:
        read += ranges(made, start, end)
        start, end = end, made.next(end, 10)
    assert read == [f"orders@broker-a:0 [{n}, {min(n + 10, 25)})" for n in (0, 10, 20)]


def test_an_empty_topic_made_anew_is_read_once_it_has_messages(broker: FakeBroker) -> None:
    done = read_up(broker)
    broker.shelves[A0] = Shelf()
    with pytest.raises(ReadFailed, match="ends at 0, and has been read up to 10"):
        plan(broker).next(done, None)
    made = plan(broker, failOnDataLoss="false")
    end = made.next(done, None)
    assert end.next == {A0: 0, B0: 8}
    assert made.next(end, None).next == end.next
    broker.shelves[A0] = anew(0, 3)
    assert ranges(made, end, made.next(end, None)) == ["orders@broker-a:0 [0, 3)"]


@pytest.mark.parametrize("first", [0, 30], ids=["whole", "its first messages deleted"])
def test_a_replaced_store_is_recognised_by_its_log(broker: FakeBroker, first: int) -> None:
    done = read_up(broker)
    broker.shelves[A0] = anew(first, 40, log=0)
    with pytest.raises(ReadFailed, match=r"orders@broker-a:0"):
        plan(broker).next(done, None)
    made = plan(broker, failOnDataLoss="false")
    end = made.next(done, None)
    assert ranges(made, done, end) == [f"orders@broker-a:0 [{first}, 40)"]
    assert end.next[B0] == 8


def test_a_queue_whose_read_messages_were_deleted_for_age_goes_on(broker: FakeBroker) -> None:
    done = read_up(broker)
    broker.shelves[A0] = shelf(10, 14)
    broker.shelves[B0] = Shelf([], 8)
    made = plan(broker)
    end = made.next(done, None)
    assert ranges(made, done, end) == ["orders@broker-a:0 [10, 14)"]
    broker.shelves[A0] = shelf(20, 24)  # what was not read was deleted as well: the task says so
    assert ranges(made, end, made.next(end, None)) == ["orders@broker-a:0 [14, 24)"]


def test_a_queue_that_lost_its_end_in_a_crash_goes_on_where_it_differs(broker: FakeBroker) -> None:
    done = read_up(broker)
    kept = shelf(0, 6).records
    broker.shelves[A0] = Shelf(kept + anew(6, 12, log=0, later_ms=1020).records)
    with pytest.raises(ReadFailed, match="lost its last messages"):
        plan(broker).next(done, None)
    made = plan(broker, failOnDataLoss="false")
    broker.fault = lambda asked: (
        Reply(OffsetReply(offset=6)) if asked.code == SearchOffset.code else None
    )
    assert ranges(made, done, made.next(done, None)) == ["orders@broker-a:0 [6, 12)"]


def test_offsets_of_an_earlier_version_are_read_on_and_get_witnesses(broker: FakeBroker) -> None:
    old = read_checkpoint({"orders": {"broker-a": {"0": 10}, "broker-b": {"0": 8}}})
    made = plan(broker)
    assert made.next(old, None) == old
    broker.shelves[A0].records.append(record(10))
    assert set(made.next(old, None).witnesses) == {A0}
    broker.shelves[A0] = anew(0, 4)
    end = plan(broker, failOnDataLoss="false").next(old, None)
    assert ranges(plan(broker), old, end) == ["orders@broker-a:0 [0, 4)"]


def test_a_clock_that_was_set_back_is_no_other_queue(broker: FakeBroker) -> None:
    earlier = [record(10 + n, stored_ms=BORN_MS - 3_600_000 + n) for n in range(4)]
    broker.shelves[A0].records += earlier[:2]
    made = plan(broker)
    first = made.next(StreamOffsets({A0: 0, B0: 8}), 10)
    second = made.next(first, None)
    broker.shelves[A0].records += earlier[2:]
    third = made.next(second, None)
    assert (first.next[A0], second.next[A0], third.next[A0]) == (10, 12, 14)
    assert third.anew == {}
    assert ranges(plan(broker), second, third) == ["orders@broker-a:0 [12, 14)"]


def test_queues_that_are_readable_no_more_wait_until_they_are_again(broker: FakeBroker) -> None:
    broker.shelves[A1] = shelf(0, 20)
    made = plan(broker)
    start = made.next(StreamOffsets({A0: 0, A1: 0, B0: 5}), 15)
    shrunk = broker.shelves.pop(A1)
    end = made.next(start, None)
    assert end.next[A0] == 10
    assert end.next[A1] == start.next[A1] < 20
    broker.shelves[A1] = shrunk
    assert ranges(made, end, made.next(end, None)) == [f"orders@broker-a:1 [{end.next[A1]}, 20)"]


def test_another_topic_with_the_same_checkpoint_is_read_from_its_beginning(
    broker: FakeBroker,
) -> None:
    done = read_up(broker)
    other = QueueId("returns", "broker-a", 0)
    broker.shelves[other] = shelf(3, 9)
    end = plan(broker, subscribe="returns").next(done, None)
    assert ranges(plan(broker, subscribe="returns"), done, end) == ["returns@broker-a:0 [3, 9)"]
    assert end.next == {**done.next, other: 9}


def test_a_topic_that_is_deleted_is_waited_for_and_warned_of_now_and_then(
    broker: FakeBroker, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    done = read_up(broker)
    made = plan(broker)
    kept, broker.shelves = broker.shelves, {}
    monkeypatch.setattr("time.sleep", lambda _: None)
    for _ in range(30):
        assert made.next(done, None) == done
    warned = [one for one in caplog.records if one.levelname == "WARNING"]
    assert len(warned) == 20
    assert "orders" in warned[0].getMessage()
    broker.shelves = kept
    broker.shelves[A0].records.append(record(10))
    assert made.next(done, None).next[A0] == 11


def test_a_gap_where_the_last_message_was_keeps_an_older_witness(broker: FakeBroker) -> None:
    done = read_up(broker)
    broker.shelves[A0].records += [record(10), None]
    made = plan(broker)
    end = made.next(done, None)
    assert (end.next[A0], end.witnesses[A0]) == (12, done.witnesses[A0])
    broker.shelves[A0].records.append(record(12))
    assert made.next(end, None).witnesses[A0].offset == 12


def test_a_planned_batch_is_not_read_from_a_topic_made_anew_meanwhile(broker: FakeBroker) -> None:
    start = StreamOffsets({A0: 0, B0: 5})
    end = plan(broker).next(start, None)
    broker.shelves[A0] = anew(0, 30)
    with pytest.raises(ReadFailed, match="made anew"):
        plan(broker).partitions(start, end)
    made = plan(broker, failOnDataLoss="false")
    assert ranges(made, start, end) == ["orders@broker-b:0 [5, 8)"]
    assert ranges(made, end, made.next(end, None)) == ["orders@broker-a:0 [0, 30)"]


def test_a_group_gets_no_old_offset_in_a_topic_made_anew(broker: FakeBroker) -> None:
    done = read_up(broker)
    broker.shelves[A0] = anew(0, 25)
    with pytest.raises(ReadFailed):
        plan(broker, group="archive").next(done, None)
    assert broker.committed == {}
    plan(broker, group="archive", failOnDataLoss="false").next(done, None)
    assert broker.committed["archive", A0] == 0


def test_a_broker_that_cannot_be_asked_for_its_witness_stands_still(broker: FakeBroker) -> None:
    done = read_up(broker)
    broker.shelves[A0].records.append(record(10))
    broker.shelves[B0].records.append(record(8))
    made = plan(broker)

    def mute(request: Command) -> Reply | None:
        is_a = request.code == PullMessage.code and request.fields["bname"] == "broker-a"
        return Reply(code=1, remark="no") if is_a else None

    broker.fault = mute
    assert made.next(done, None).next == {A0: 10, B0: 9}
