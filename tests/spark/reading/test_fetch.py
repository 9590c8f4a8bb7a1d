from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import sprocket.spark.reading.fetch as fetch
from sprocket.message.queue import QueueId
from sprocket.message.record import scan
from sprocket.protocol.command import Command, Reply
from sprocket.protocol.requests.pull import PullMessage
from sprocket.spark.options.loss import ReadFailed
from sprocket.spark.options.options import BatchOptions, ReadOptions, read_options
from sprocket.spark.reading.fetch import Chunk, Fetcher, gathered
from sprocket.spark.reading.ranges import Range
from tests.compat.javaland import wait_until
from tests.spark.support import FakeBroker, Shelf, hang_up, record, serving

QUEUE = QueueId("orders", "broker-a", 0)


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeBroker]:
    monkeypatch.setattr(fetch, "_PAUSE_FIRST_S", 0.001)
    monkeypatch.setattr(fetch, "_PAUSE_LONGEST_S", 0.01)
    shelf = Shelf([record(offset) for offset in range(20, 120)], first=20)
    with serving(FakeBroker({QUEUE: shelf})) as broker:
        yield broker


def options(broker: FakeBroker, **more: str) -> ReadOptions:
    given = {"namesrvAddr": broker.address, "subscribe": "orders", "pullTimeoutMs": "200"}
    return read_options({**given, **more}, BatchOptions)


def offsets(broker: FakeBroker, start: int, end: int, **more: str) -> list[int]:
    with Fetcher(options(broker, **more), {"broker-a": broker.address}) as fetcher:
        found = []
        for chunk in fetcher.chunks(Range(QUEUE, start, end)):
            some = [message.queue_offset for message in scan(chunk.records)]
            assert chunk.start <= some[0] <= some[-1] < chunk.end
            found += some
        return found


def test_a_range_is_read_exactly_in_as_many_pulls_as_the_broker_wants(broker: FakeBroker) -> None:
    assert offsets(broker, 25, 119) == list(range(25, 119))
    asked = [(pull.queue_offset, pull.max_msg_nums) for pull in broker.pulls]
    assert asked == [(25, 94), (57, 62), (89, 30)]


def test_pulls_bring_their_own_subscription_and_ask_for_large_answers(broker: FakeBroker) -> None:
    offsets(broker, 25, 26, tags="paid || new", group="readers")
    (pull,) = broker.pulls
    assert (pull.consumer_group, pull.subscription) == ("readers", "paid || new")
    assert pull.sys_flag & 4
    assert not pull.sys_flag & 1
    assert pull.max_msg_bytes == 1024 * 1024


def test_broken_connections_are_survived_and_nothing_is_read_twice(broker: FakeBroker) -> None:
    count = iter(range(100))

    def fault(request: Command) -> Reply | None:
        is_pull = request.code == PullMessage.code
        return hang_up if is_pull and next(count) % 2 == 0 else None

    broker.fault = fault
    assert offsets(broker, 20, 120) == list(range(20, 120))


def test_a_busy_broker_is_asked_again(broker: FakeBroker) -> None:
    count = iter(range(100))

    def fault(request: Command) -> Reply | None:
        is_pull = request.code == PullMessage.code
        return Reply(code=2, remark="busy") if is_pull and next(count) < 3 else None

    broker.fault = fault
    assert offsets(broker, 20, 30) == list(range(20, 30))


def test_a_moved_broker_is_found_again(broker: FakeBroker) -> None:
    with Fetcher(options(broker), {"broker-a": "127.0.0.1:1"}) as fetcher:
        (chunk,) = fetcher.chunks(Range(QUEUE, 20, 25))
    assert (chunk.start, chunk.end) == (20, 25)


def test_a_broker_that_stays_away_fails_the_task_with_the_place(broker: FakeBroker) -> None:
    broker.fault = lambda _: hang_up
    with pytest.raises(ReadFailed, match=r"orders@broker-a:0 at offset 20.*pullTimeoutMs"):
        offsets(broker, 20, 30)


def test_a_refusal_fails_the_task_at_once_with_the_place(broker: FakeBroker) -> None:
    broker.fault = lambda _: Reply(code=16, remark="the topic is not readable")
    with pytest.raises(ReadFailed, match=r"orders@broker-a:0 at offset 20: .*not readable"):
        offsets(broker, 20, 30)


def test_messages_that_were_deleted_fail_the_task(broker: FakeBroker) -> None:
    with pytest.raises(ReadFailed, match=r"orders@broker-a:0: offsets \[5, 20\) are gone"):
        offsets(broker, 5, 30)


def test_or_are_passed_over_if_loss_is_allowed(
    broker: FakeBroker, caplog: pytest.LogCaptureFixture
) -> None:
    assert offsets(broker, 5, 30, failOnDataLoss="false") == list(range(20, 30))
    assert "[5, 20) are gone" in caplog.text


def test_a_range_that_was_deleted_whole_is_empty_if_loss_is_allowed(broker: FakeBroker) -> None:
    assert offsets(broker, 5, 15, failOnDataLoss="false") == []


def test_an_end_that_is_not_there_yet_is_waited_for(broker: FakeBroker) -> None:
    shelf = broker.shelves[QUEUE]
    count = iter(range(100))

    def fault(request: Command) -> Any:
        if request.code == PullMessage.code and next(count) == 4:
            shelf.records += [record(120), record(121)]

    broker.fault = fault
    assert offsets(broker, 118, 122) == [118, 119, 120, 121]


def test_an_end_that_does_not_come_fails_the_task(broker: FakeBroker) -> None:
    with pytest.raises(ReadFailed, match=r"orders@broker-a:0 at offset 120, of .*\[118, 130\)"):
        offsets(broker, 118, 130)
    with pytest.raises(ReadFailed, match="at offset 125"):
        offsets(broker, 125, 130)


def test_or_ends_the_range_early_if_loss_is_allowed(broker: FakeBroker) -> None:
    assert offsets(broker, 118, 130, failOnDataLoss="false") == [118, 119]
    assert offsets(broker, 125, 130, failOnDataLoss="false") == []


def test_a_stretch_without_a_match_is_passed(broker: FakeBroker) -> None:
    shelf = broker.shelves[QUEUE]
    shelf.records[5:80] = [None] * 75
    assert offsets(broker, 20, 120) == [*range(20, 25), *range(100, 120)]


def test_a_broker_that_leads_backwards_is_no_endless_loop(broker: FakeBroker) -> None:
    from sprocket.protocol.requests.pull import PullReply

    back = PullReply(suggest_which_broker_id=0, next_begin_offset=20, min_offset=20, max_offset=120)
    broker.fault = lambda request: (
        Reply(back, record(20)) if request.code == PullMessage.code else None
    )
    with pytest.raises(ReadFailed, match="the next offset is 20"):
        offsets(broker, 20, 30)


def test_messages_that_an_answer_promises_and_does_not_bring_fail_the_task(
    broker: FakeBroker,
) -> None:
    from sprocket.protocol.requests.pull import PullReply

    empty = PullReply(
        suggest_which_broker_id=0, next_begin_offset=30, min_offset=20, max_offset=120
    )
    broker.fault = lambda request: Reply(empty) if request.code == PullMessage.code else None
    with pytest.raises(ReadFailed, match=r"orders@broker-a:0 at offset 20: .*contains none"):
        offsets(broker, 20, 30)


def test_a_refusal_to_filter_is_known_by_its_code(broker: FakeBroker) -> None:
    broker.fault = lambda request: (
        Reply(code=1, remark="in whatever words")
        if request.code == PullMessage.code and request.fields["expressionType"] != "TAG"
        else None
    )
    assert offsets(broker, 20, 120, sql="amount > 5") == list(range(20, 120))


def test_a_broker_that_fails_at_any_pull_is_waited_for_in_vain(broker: FakeBroker) -> None:
    broker.fault = lambda request: (
        Reply(code=1, remark="out of order") if request.code == PullMessage.code else None
    )
    with pytest.raises(ReadFailed, match=r"out of order.*pullTimeoutMs"):
        offsets(broker, 20, 120, sql="amount > 5")


def test_a_broker_that_does_not_filter_by_sql_gives_everything(broker: FakeBroker) -> None:
    def fault(request: Command) -> Reply | None:
        if request.code == PullMessage.code and request.fields["expressionType"] == "SQL92":
            text = "The broker does not support consumer to filter message by SQL92"
            return Reply(code=1, remark=text)
        return None

    broker.fault = fault
    assert offsets(broker, 20, 120, sql="amount > 5") == list(range(20, 120))
    assert {(p.expression_type, p.subscription) for p in broker.pulls} == {("TAG", "*")}


def test_answers_are_gathered_until_they_are_worth_decoding() -> None:
    small = [Chunk(memoryview(b"x" * 10), n * 32, n * 32 + 32) for n in range(300)]
    found = list(gathered(iter(small)))
    assert [(one.start, one.end) for one in found] == [(0, 8192), (8192, 9600)]
    assert sum(len(one.records) for one in found) == 3000
    large = [Chunk(memoryview(bytes(1 << 21)), n, n + 1) for n in range(3)]
    assert [one.end for one in gathered(iter(large))] == [1, 2, 3]


def small(broker: FakeBroker, count: int = 40) -> tuple[Range, ...]:
    """Queues with three messages each, and what is read of them."""
    names = [QueueId("small", "broker-a", number) for number in range(count)]
    for name in names:
        broker.shelves[name] = Shelf([record(offset) for offset in range(3)])
    return tuple(Range(name, 0, 3) for name in names)


def places(broker: FakeBroker, share: tuple[Range, ...], **more: str) -> list[tuple[int, int]]:
    """Queue number and offset of each message of a share that is read as a task reads it."""
    found = []
    with Fetcher(options(broker, **more), {"broker-a": broker.address}) as fetcher:
        for place, one in enumerate(share, 1):
            for chunk in fetcher.chunks(one, share[place:]):
                found += [
                    (one.queue.number, message.queue_offset) for message in scan(chunk.records)
                ]
    return found


def test_many_small_ranges_are_asked_for_ahead_and_each_once(broker: FakeBroker) -> None:
    share = small(broker)
    with Fetcher(options(broker), {"broker-a": broker.address}) as fetcher:
        next(iter(fetcher.chunks(share[0], share[1:])))
        wait_until(lambda: len(broker.pulls) == 1 + fetch.AHEAD_MAX)
    broker.pulls.clear()
    assert places(broker, share) == [(n, at) for n in range(40) for at in range(3)]
    assert [pull.queue_id for pull in broker.pulls] == list(range(40))


def test_nothing_is_asked_for_ahead_of_a_large_range_or_at_another_broker(
    broker: FakeBroker,
) -> None:
    share = small(broker, 3)
    elsewhere = Range(QueueId("small", "broker-b", 0), 0, 3)
    large = Range(QUEUE, 20, 20 + 9000)
    with Fetcher(options(broker), {"broker-a": broker.address}) as fetcher:
        next(fetcher.chunks(share[0], [elsewhere, *share[1:]]))
        next(fetcher.chunks(share[1], [large]))
    assert [pull.queue_id for pull in broker.pulls] == [0, 1]


def test_what_was_asked_for_ahead_is_asked_again_after_a_break(broker: FakeBroker) -> None:
    count = iter(range(1000))

    def fault(request: Command) -> Reply | None:
        is_pull = request.code == PullMessage.code
        return hang_up if is_pull and next(count) % 7 == 3 else None

    share = small(broker)
    broker.fault = fault
    assert places(broker, share) == [(n, at) for n in range(40) for at in range(3)]


def test_a_broker_that_does_not_filter_is_asked_again_for_what_was_asked_for_ahead(
    broker: FakeBroker,
) -> None:
    def fault(request: Command) -> Reply | None:
        is_filtered = request.fields.get("expressionType") == "SQL92"
        return Reply(code=1, remark="does not support") if is_filtered else None

    share = small(broker)
    broker.fault = fault
    found = places(broker, share, sql="a > 5")
    assert found == [(n, at) for n in range(40) for at in range(3)]
