from __future__ import annotations

import datetime
from collections.abc import Iterator

import pytest

import sprocket.spark.writing.send as send
from sprocket.message.hashing import java_hash
from sprocket.message.message import Message, StoredMessage
from sprocket.message.opening import unbounded
from sprocket.message.queue import QueueId
from sprocket.message.record import scan
from sprocket.protocol.command import Command, Reply
from sprocket.protocol.requests.route import RouteOfTopic
from sprocket.protocol.requests.send import SendBatch, SendMessageV2
from sprocket.spark.options.write_options import write_options
from sprocket.spark.writing.failures import WriteFailed
from sprocket.spark.writing.rows import OutgoingMessage
from sprocket.spark.writing.send import Sender
from tests.spark.support import FakeBroker, Shelf, hang_up, serving

QUEUES = [QueueId("orders", "broker-a", number) for number in range(4)]
SENDS = (SendMessageV2.code, SendBatch.code)


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeBroker]:
    monkeypatch.setattr(send, "_PAUSE_FIRST_S", 0.001)
    monkeypatch.setattr(send, "_PAUSE_LONGEST_S", 0.01)
    with serving(FakeBroker({queue: Shelf() for queue in QUEUES})) as broker:
        yield broker


def outgoing(number: int, **more: object) -> OutgoingMessage:
    message = Message("orders", b"order %d" % number, tag="new", keys=[f"k{number}"])
    for name, value in more.items():
        setattr(message, name, value)
    return OutgoingMessage(message, None, None)


def sent(broker: FakeBroker, some: list[OutgoingMessage], **given: str) -> int:
    options = {"namesrvAddr": broker.address, "sendTimeoutMs": "1000", **given}
    with Sender(write_options(options)) as sender:
        sender.send(some)
        sender.finish()
        return sender.acknowledged


def stored(broker: FakeBroker) -> dict[int, list[StoredMessage]]:
    return {
        queue.number: [
            message
            for raw in shelf.records
            if raw is not None
            for message in scan(raw, opening=unbounded())
        ]
        for queue, shelf in broker.shelves.items()
    }


def test_messages_go_in_batches_by_turns_and_arrive_whole(broker: FakeBroker) -> None:
    assert sent(broker, [outgoing(n) for n in range(1000)], batchMaxRecords="100") == 1000
    assert broker.requests == [100] * 10
    found = stored(broker)
    assert all(len(messages) in (200, 300) for messages in found.values())
    every = [message for messages in found.values() for message in messages]
    assert {message.body for message in every} == {b"order %d" % n for n in range(1000)}
    assert all(message.tag == "new" and message.keys for message in every)
    assert len({message.properties["UNIQ_KEY"] for message in every}) == 1000


def test_large_and_delayed_messages_go_alone(broker: FakeBroker) -> None:
    some = [outgoing(0), outgoing(1, body=b"x" * 5000), outgoing(2, delay_level=3), outgoing(3)]
    assert sent(broker, some) == 4
    assert sorted(broker.requests) == [1, 1, 1, 1]
    every = {m.keys[0]: m for messages in stored(broker).values() for m in messages}
    assert every["k1"].body == b"x" * 5000
    assert every["k2"].properties["DELAY"] == "3"


def test_a_row_may_choose_its_queue(broker: FakeBroker) -> None:
    some = [outgoing(n)._replace(queue_number=n % 4) for n in range(8)]
    sent(broker, some)
    found = stored(broker)
    assert {n: [m.keys for m in messages] for n, messages in found.items()} == {
        n: [[f"k{n}"], [f"k{n + 4}"]] for n in range(4)
    }
    with pytest.raises(WriteFailed, match="topic orders has no queue broker-z:0"):
        sent(broker, [OutgoingMessage(some[0].message, "broker-z", 0)])


def test_or_have_it_chosen_by_its_key(broker: FakeBroker) -> None:
    sent(broker, [outgoing(n) for n in range(20)], queueBy="key")
    for number, messages in stored(broker).items():
        assert all(abs(java_hash(m.keys[0])) % 4 == number for m in messages)


def test_nothing_counts_before_it_is_acknowledged_and_a_busy_broker_is_asked_again(
    broker: FakeBroker,
) -> None:
    count = iter(range(1000))

    def busy(request: Command) -> Reply | None:
        is_busy = request.code in SENDS and next(count) % 3 == 0
        return Reply(code=2, remark="busy") if is_busy else None

    broker.fault = busy
    assert sent(broker, [outgoing(n) for n in range(300)], batchMaxRecords="10") == 300
    assert sum(broker.requests) == 300


def test_broken_connections_lose_nothing(broker: FakeBroker) -> None:
    count = iter(range(1000))

    def broken(request: Command) -> Reply | None:
        return hang_up if request.code in SENDS and next(count) % 40 == 39 else None

    broker.fault = broken
    assert sent(broker, [outgoing(n) for n in range(300)], batchMaxRecords="2") == 300
    every = {m.body for messages in stored(broker).values() for m in messages}
    assert every == {b"order %d" % n for n in range(300)}


def test_a_broker_that_stays_busy_fails_the_task(broker: FakeBroker) -> None:
    broker.fault = lambda request: Reply(code=2, remark="busy") if request.code in SENDS else None
    with pytest.raises(WriteFailed, match=r"orders@broker-a:\d.* after 3 attempts: busy"):
        sent(broker, [outgoing(0)], sendRetries="2")


def test_a_refusal_fails_the_task_at_once(broker: FakeBroker) -> None:
    broker.fault = lambda request: (
        Reply(code=13, remark="illegal") if request.code in SENDS else None
    )
    with pytest.raises(WriteFailed, match=r"after 1 attempts: illegal"):
        sent(broker, [outgoing(0)])


def test_a_topic_that_nobody_has_fails_the_task(broker: FakeBroker) -> None:
    with pytest.raises(WriteFailed, match="topic nothing"):
        sent(broker, [outgoing(0, topic="nothing")], sendRetries="1")


def test_messages_that_wait_go_alone_with_their_time(broker: FakeBroker) -> None:
    at = datetime.datetime(2030, 1, 31, 8, tzinfo=datetime.UTC)
    some = [outgoing(0), outgoing(1, deliver_at=at), outgoing(2, delay_level=3), outgoing(3)]
    assert sent(broker, some) == 4
    assert sorted(broker.requests) == [1, 1, 2] or sorted(broker.requests) == [1, 1, 1, 1]
    properties = [m.properties for queue in stored(broker).values() for m in queue]
    times = [one["TIMER_DELIVER_MS"] for one in properties if "TIMER_DELIVER_MS" in one]
    assert times == [str(round(at.timestamp() * 1000))]
    assert [one["DELAY"] for one in properties if "DELAY" in one] == ["3"]


def test_queues_are_chosen_when_the_name_server_is_back(broker: FakeBroker) -> None:
    count = iter(range(100))

    def fault(request: Command) -> Reply | None:
        return hang_up if request.code == RouteOfTopic.code and next(count) < 3 else None

    broker.fault = fault
    assert sent(broker, [outgoing(n) for n in range(10)], queueBy="key") == 10
    broker.fault = lambda _: hang_up
    with pytest.raises(WriteFailed, match="topic orders: no queue can be chosen"):
        sent(broker, [outgoing(0)], queueBy="key", sendRetries="1")
