"""A topic of many queues as a stream: what is asked of brokers, and that nothing is missed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed: pip install 'sprocketmq[spark]'")

from sprocket.base.errors import ReplyError
from sprocket.clientcore.witness import UNKNOWN, Witness
from sprocket.message.queue import QueueId
from sprocket.protocol.command import Command, Reply
from sprocket.protocol.requests.offset import MaxOffset, QueryOffset, UpdateOffset
from sprocket.protocol.requests.pull import PullMessage
from sprocket.protocol.requests.topic import TopicStats
from sprocket.spark.options.checkpoint import StreamOffsets
from sprocket.spark.options.loss import ReadFailed
from sprocket.spark.options.options import StreamOptions, read_options
from sprocket.spark.reading.sampling import beside, chosen
from sprocket.spark.reading.stream import StreamPlan, idle_s
from tests.spark.support import BORN_MS, FakeBroker, Shelf, record, serving

MANY = 80


def name(number: int) -> QueueId:
    return QueueId("orders", "broker-a", number)


def one(number: int, offset: int, later_ms: int = 0) -> bytes:
    at = offset * MANY + number
    stored_ms = BORN_MS + at + later_ms
    return record(offset, log_offset=at * 100, stored_ms=stored_ms, queue_number=number)


def cluster(count: int) -> FakeBroker:
    """Each queue has five messages."""
    queues = {name(number): [one(number, offset) for offset in range(5)] for number in range(count)}
    return FakeBroker({queue: Shelf(list(records)) for queue, records in queues.items()})


def grow(broker: FakeBroker) -> None:
    """A message more in each queue."""
    for queue, shelf in broker.shelves.items():
        shelf.records.append(one(queue.number, shelf.end))


@pytest.fixture
def broker() -> Iterator[FakeBroker]:
    with serving(cluster(MANY)) as broker:
        yield broker


def plan(broker: FakeBroker, **given: str) -> StreamPlan:
    options = {"namesrvAddr": broker.address, "subscribe": "orders", "startingOffsets": "earliest"}
    quick = {"fetchOffset.retryIntervalMs": "1", "fetchOffset.numRetries": "1"}
    return StreamPlan(read_options({**options, **quick, **given}, StreamOptions))


def asked_by_triggers(count: int, **given: str) -> list[Counter[int]]:
    """What two micro-batches with messages in every queue ask, and one without."""
    found = []
    with serving(cluster(count)) as broker:
        made = plan(broker, **given)
        at = made.next(made.initial(), None)
        at = made.next(at, None)  # recognises all queues once
        for has_more in (True, True, False):
            if has_more:
                grow(broker)
            broker.asked.clear()
            end = made.next(at, None)
            assert sum(end.next.values()) - sum(at.next.values()) == (count if has_more else 0)
            made.partitions(at, end)
            at = end
            found.append(Counter(broker.asked))
    return found


def test_what_a_trigger_asks_does_not_grow_with_the_number_of_queues() -> None:
    few, many = asked_by_triggers(40), asked_by_triggers(MANY)
    assert few == many
    assert many[0] == many[1] == {TopicStats.code: 1, PullMessage.code: 8}
    assert many[2] == {TopicStats.code: 1}


def test_each_stream_of_a_session_asks_for_itself(broker: FakeBroker) -> None:
    made = [plan(broker) for _ in range(3)]
    at = [one.next(one.next(one.initial(), None), None) for one in made]
    grow(broker)
    broker.asked.clear()
    ends = [one.next(start, None) for one, start in zip(made, at, strict=True)]
    assert broker.asked == {TopicStats.code: 3, PullMessage.code: 24}
    assert all(end == ends[0] for end in ends)


def test_a_stream_that_waits_asks_less_often_the_more_queues_a_broker_has(
    broker: FakeBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []
    made = plan(broker)
    at = made.next(made.next(made.initial(), None), None)
    monkeypatch.setattr("sprocket.spark.reading.stream.time.sleep", pauses.append)
    assert made.next(at, None) == at
    assert pauses == [0.02]
    asked = [
        idle_s(QueueId("orders", f"broker-{number % brokers}", number) for number in range(count))
        for count, brokers in ((4, 1), (500, 1), (500, 5), (100_000, 1))
    ]
    assert asked == pytest.approx([0.02, 0.1, 0.02, 1.0])
    assert idle_s([]) == 0.02


def test_a_refresh_of_the_routes_recognises_a_bounded_number_of_queues() -> None:
    first, _, idle = asked_by_triggers(MANY, routeRefreshMs="0")
    assert first[PullMessage.code] <= 72
    assert idle[PullMessage.code] <= 72


def test_offsets_of_many_queues_are_committed_every_few_seconds() -> None:
    found = asked_by_triggers(MANY, group="archive")
    commits = [one[UpdateOffset.code] + one[QueryOffset.code] for one in found]
    assert commits == [0, 0, 0]


def test_the_last_offsets_of_an_available_now_query_are_committed(broker: FakeBroker) -> None:
    made = plan(broker, group="archive")
    at = made.initial()
    made.set_target()
    while (end := made.next(at, 120)) != at:
        made.done(end)
        at = end
    assert broker.committed == {("archive", name(number)): 5 for number in range(MANY)}


def test_a_new_query_of_many_queues_asks_once_for_all(broker: FakeBroker) -> None:
    made = plan(broker)
    assert made.initial().next == {name(number): 0 for number in range(MANY)}
    assert broker.asked[TopicStats.code] == 2
    assert broker.asked[MaxOffset.code] == 0


def test_the_witnesses_of_many_queues_come_with_their_ends(broker: FakeBroker) -> None:
    made = plan(broker)
    end = made.next(made.initial(), None)
    assert end.witnesses[name(7)] == Witness(4, UNKNOWN, BORN_MS + 4 * MANY + 7)
    assert len(end.witnesses) == MANY
    assert broker.asked[PullMessage.code] == 0


def test_a_limited_micro_batch_has_witnesses_of_what_it_reads(broker: FakeBroker) -> None:
    made = plan(broker)
    end = made.next(made.initial(), 2 * MANY)
    assert end.next[name(7)] == 2
    assert end.witnesses[name(7)] == Witness(1, (MANY + 7) * 100, BORN_MS + MANY + 7)


def test_a_topic_of_many_queues_that_was_made_anew_is_noticed_at_once(broker: FakeBroker) -> None:
    made = plan(broker, failOnDataLoss="false")
    at = made.next(made.next(made.initial(), None), None)
    for queue in broker.shelves:
        broker.shelves[queue] = Shelf([one(queue.number, n, 60_000) for n in range(6)])
    end = made.next(at, None)
    assert end.anew == {name(number): 0 for number in range(MANY)}


def test_a_broker_that_lost_its_newest_messages_is_noticed_in_each_queue(
    broker: FakeBroker,
) -> None:
    """The log ended in a crash where queue 60 had its last message; more has come since."""
    made = plan(broker, failOnDataLoss="false")
    at = made.next(made.next(made.initial(), None), None)
    for number in range(60, MANY):
        shelf = broker.shelves[name(number)]
        shelf.records[4:] = [one(number, 4, 60_000), one(number, 5, 60_000)]
    end = made.next(at, None)
    assert set(end.anew) == {name(number) for number in range(60, MANY)}
    with pytest.raises(ReadFailed, match="lost its last messages"):
        plan(broker).next(at, None)


def test_queues_whose_read_messages_were_deleted_for_age_go_on(broker: FakeBroker) -> None:
    made = plan(broker)
    at = made.next(made.initial(), None)
    for queue in broker.shelves:
        broker.shelves[queue] = Shelf([one(queue.number, n) for n in (7, 8)], 7)
    assert not plan(broker).next(at, None).anew


def test_a_broker_that_permits_no_table_is_asked_queue_by_queue(broker: FakeBroker) -> None:
    broker.fault = lambda asked: Reply(code=16) if asked.code == TopicStats.code else None
    made = plan(broker)
    end = made.next(made.initial(), None)
    assert end.next == {name(number): 5 for number in range(MANY)}
    assert end.witnesses[name(7)].log_offset == (4 * MANY + 7) * 100


def test_a_busy_broker_is_not_asked_more_instead(broker: FakeBroker) -> None:
    def busy(asked: Command) -> Reply | None:
        return Reply(code=2, remark="busy") if asked.code == TopicStats.code else None

    broker.fault = busy
    with pytest.raises(ReplyError, match="busy"):
        plan(broker).initial()
    assert broker.asked[MaxOffset.code] == 0


def test_a_checkpoint_with_exact_witnesses_goes_on(broker: FakeBroker) -> None:
    exact = {name(n): Witness(4, (4 * MANY + n) * 100, BORN_MS + 4 * MANY + n) for n in range(MANY)}
    at = StreamOffsets({name(number): 5 for number in range(MANY)}, exact)
    assert plan(broker).next(at, None) == at


def test_every_witness_has_its_turn() -> None:
    witnesses = {name(n): Witness(4, UNKNOWN, BORN_MS + n) for n in range(MANY)}
    turns = [chosen(witnesses, (), is_due=True, turn=turn) for turn in range(1, 6)]
    assert {queue for some in turns for queue in some} == set(witnesses)
    assert all(len(some) <= 72 for some in turns)
    assert chosen(witnesses, (), is_due=True, turn=0) == witnesses
    assert chosen(witnesses, (), is_due=False, turn=3) == {}


def test_one_queue_that_moved_has_the_newest_of_its_topic_and_broker_asked_about() -> None:
    witnesses = {name(n): Witness(4, UNKNOWN, BORN_MS - n) for n in range(MANY)}
    other = {QueueId("orders", "broker-b", n): Witness(4, 1, BORN_MS) for n in range(MANY)}
    found = chosen(witnesses | other, {name(77)}, is_due=False, turn=3)
    assert set(found) == {name(n) for n in range(8)}
    assert set(beside(witnesses | other, [name(3)])) == set(witnesses)
