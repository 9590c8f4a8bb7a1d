"""Kombu on a real broker: queues, exchanges, acknowledgements, prefetch, forks."""

from __future__ import annotations

import gc
import os
import socket
import time
from collections.abc import Iterator
from typing import Any

import kombu
import pytest

import sprocket.integrations.celery  # noqa: F401 - makes the scheme known
from sprocket.base.errors import ConfigError, ConnectFailed, RouteNotFound
from sprocket.client.producer import Producer
from sprocket.integrations.celery import shared_stations
from sprocket.integrations.queues.task_queues import TaskQueues
from sprocket.testing.node_thread import NodeThread
from tests.support import code_of_child

pytestmark = pytest.mark.process
WAIT = 20.0


@pytest.fixture(scope="module")
def node() -> Iterator[NodeThread]:
    with NodeThread() as node:
        yield node


@pytest.fixture
def connect(node: NodeThread) -> Iterator[Any]:
    """Makes connections, and closes them at the end."""
    opened: list[Any] = []

    def connection(**options: Any) -> Any:
        made = kombu.Connection(
            f"sprocket+rocketmq://{node.nameservers}", transport_options=options
        )
        opened.append(made)
        return made

    yield connection
    for each in opened:
        each.release()
    assert not shared_stations._stations


@pytest.fixture
def queue(node: NodeThread) -> Any:
    """A queue that no other test has."""
    name = node.group("work.q")
    return kombu.Queue(name, kombu.Exchange(f"x-{name}"), routing_key="key")


def publish(connection: Any, queue: Any, *bodies: Any, **named: Any) -> None:
    producer = connection.Producer()
    for body in bodies:
        producer.publish(body, exchange=queue.exchange, routing_key="key", declare=[queue], **named)


class Taken:
    """A consumer that keeps what it gets."""

    def __init__(self, connection: Any, queues: list[Any], **named: Any) -> None:
        self.connection = connection
        self.messages: list[Any] = []
        self.consumer = connection.Consumer(queues, on_message=self.messages.append, **named)
        self.consumer.consume()

    @property
    def bodies(self) -> list[Any]:
        return [each.decode() for each in self.messages]

    def wait(self, count: int) -> list[Any]:
        until = time.monotonic() + WAIT
        while len(self.messages) < count and time.monotonic() < until:
            self.drain(1.0)
        assert len(self.messages) >= count, self.bodies
        return self.messages

    def drain(self, seconds: float) -> None:
        try:
            self.connection.drain_events(timeout=seconds)
        except TimeoutError:
            return


def test_what_is_published_is_consumed_once_and_acknowledged(connect: Any, queue: Any) -> None:
    publish(connect(), queue, *range(10))
    taken = Taken(connect(), [queue])
    for message in taken.wait(10):
        message.ack()
    assert sorted(taken.bodies) == list(range(10))
    assert not any(each.delivery_info["redelivered"] for each in taken.messages)
    taken.drain(0.3)
    assert len(taken.messages) == 10
    taken.connection.release()
    assert queue(connect().default_channel).queue_declare(passive=True).message_count == 0


def test_a_rejected_message_comes_again_or_is_a_dead_letter(
    node: NodeThread, connect: Any, queue: Any
) -> None:
    publish(connect(), queue, "again", "never")
    taken = Taken(connect(), [queue])
    for message in taken.wait(2):
        message.reject(requeue=message.decode() == "again")
    again = taken.wait(3)[2]
    assert again.decode() == "again"
    assert again.delivery_info["redelivered"]
    again.ack()
    topic = queue.name.replace(".", "%2E")
    assert len(node.messages(f"%DLQ%{topic}", 1)) == 1


def test_a_consumer_has_no_more_than_its_prefetch_count(connect: Any, queue: Any) -> None:
    publish(connect(), queue, *range(6))
    taken = Taken(connect(), [queue], prefetch_count=2)
    taken.wait(2)
    taken.drain(0.5)
    assert len(taken.messages) == 2
    other = Taken(connect(), [queue], prefetch_count=4)
    other.wait(4)
    taken.messages[0].ack()
    for message in other.messages:
        message.ack()
    taken.messages[1].ack()
    assert sorted(taken.bodies + other.bodies) == list(range(6))


def test_closing_gives_back_what_is_not_acknowledged(connect: Any, queue: Any) -> None:
    publish(connect(), queue, *range(4))
    first = Taken(connect(), [queue], prefetch_count=2)
    first.wait(2)[0].ack()
    first.connection.release()
    second = Taken(connect(), [queue])
    for message in second.wait(3):
        message.ack()
    done = first.bodies[0]
    assert sorted(second.bodies) == sorted(set(range(4)) - {done})


def test_connections_that_nobody_closes_give_back_what_they_have(
    node: NodeThread, connect: Any, queue: Any
) -> None:
    publish(connect(), queue, *range(4))
    Taken(kombu.Connection(f"sprocket+rocketmq://{node.nameservers}"), [queue]).wait(4)
    gc.collect()
    pool = connect().Pool(limit=1)
    pooled = Taken(pool.acquire(), [queue])
    pooled.wait(4)
    pool.force_close_all()
    last = Taken(connect(), [queue])
    for message in last.wait(4):
        message.ack()
    assert sorted(last.bodies) == list(range(4))


def test_a_get_receives_one_message(connect: Any, queue: Any) -> None:
    publish(connect(), queue, "one")
    bound = queue(connect().default_channel)
    message = bound.get()
    assert message.decode() == "one"
    assert bound.get() is None
    message.requeue()
    message = bound.get()
    assert message.decode() == "one"
    message.ack()
    publish(connect(), queue, "two")
    assert bound.get(no_ack=True).decode() == "two"
    assert bound.get() is None
    publish(connect(), queue, "three", "four")
    assert bound.purge() == 2


def test_a_queue_with_a_highest_priority_delivers_what_is_more_urgent_first(
    node: NodeThread, connect: Any
) -> None:
    queue = kombu.Queue(node.group(), kombu.Exchange("x"), routing_key="key", max_priority=9)
    for priority in (None, 3, 9, 99, 1):
        publish(connect(), queue, str(priority), priority=priority)
    past = {"eta": "2001-01-01T00:00:00+00:00"}
    publish(connect(), queue, "4", priority=4, headers=past)
    taken = Taken(connect(), [queue])
    for message in taken.wait(6):
        message.ack()
    assert taken.bodies == ["9", "99", "4", "3", "1", "None"]
    assert taken.messages[0].properties["priority"] == 9
    for wrong in (-1, 256, "9"):
        named = {"x-max-priority": wrong}
        with pytest.raises(ConfigError, match="priority"):
            kombu.Queue("q", queue_arguments=named)(connect().default_channel).queue_declare()


def test_what_is_sent_to_a_declared_queue_waits_for_its_route_and_never_is_mail(
    connect: Any, queue: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection = connect()
    publish(connection, queue, "first")
    send, failures = Producer.send, iter([True, True, False])

    async def absent(*_: Any) -> bool:
        return False

    async def unregistered(*args: Any, **named: Any) -> Any:
        if next(failures):
            raise RouteNotFound("name servers have begun anew, and no broker has registered")
        return await send(*args, **named)

    with monkeypatch.context() as patched:
        patched.setattr(TaskQueues, "exists", absent)
        patched.setattr(Producer, "send", unregistered)
        publish(connection, queue, "second")
    taken = Taken(connect(), [queue])
    for message in taken.wait(2):
        message.ack()
    assert sorted(taken.bodies) == ["first", "second"]


def test_a_task_with_an_eta_waits_at_the_broker(connect: Any, queue: Any) -> None:
    due = time.time() + 1.5
    eta = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(due)) + f".{int(due % 1 * 1e6):06}+00:00"
    publish(connect(), queue, "late", headers={"eta": eta})
    publish(connect(), queue, "soon")
    taken = Taken(connect(), [queue])
    taken.wait(2)
    assert taken.bodies == ["soon", "late"]
    assert time.time() >= due
    for message in taken.messages:
        message.ack()
    other = connect(delays="worker")
    publish(other, queue, "held", headers={"eta": "2999-01-01T00:00:00+00:00"})
    taken.wait(3)[2].ack()


def test_what_has_expired_is_not_delivered(connect: Any, queue: Any) -> None:
    publish(connect(), queue, "stale", expiration=0.001)
    publish(connect(), queue, "fresh", expiration=600)
    taken = Taken(connect(), [queue])
    taken.wait(1)[0].ack()
    publish(connect(), queue, "stale", expiration=0.001)
    time.sleep(0.01)
    assert queue(connect().default_channel).get() is None
    assert taken.bodies == ["fresh"]


def test_a_reply_that_is_put_back_is_there_again(node: NodeThread, connect: Any) -> None:
    replies = kombu.Queue(node.group("replies"), exclusive=True)
    taken = Taken(connect(), [replies], prefetch_count=1)
    for body in ("one", "two"):
        connect().Producer().publish(body, exchange="", routing_key=replies.name)
    taken.wait(1)[0].requeue()
    taken.wait(2)[1].ack()
    taken.wait(3)
    assert taken.bodies == ["one", "one", "two"]
    taken.consumer.cancel()
    other = connect()
    other_replies = kombu.Queue(node.group("replies"), exclusive=True)(other.default_channel)
    other_replies.declare()
    connect().Producer().publish("kept", exchange="", routing_key=other_replies.name)
    until = time.monotonic() + WAIT
    while (message := other_replies.get()) is None and time.monotonic() < until:
        time.sleep(0.01)
    message.requeue()
    assert other_replies.get(no_ack=True).decode() == "kept"


def test_a_fanout_exchange_reaches_everybody_who_listens_now(
    node: NodeThread, connect: Any
) -> None:
    exchange = kombu.Exchange(node.group("news"), type="fanout")
    takers = [
        Taken(connect(), [kombu.Queue(node.group(), exchange, auto_delete=True)], no_ack=True)
        for _ in range(2)
    ]
    connect().Producer().publish("hello", exchange=exchange, declare=[exchange])
    for each in takers:
        each.wait(1)
        assert each.bodies == ["hello"]


def test_a_topic_exchange_reaches_those_whose_pattern_matches(
    node: NodeThread, connect: Any
) -> None:
    exchange = kombu.Exchange(node.group("events"), type="topic")
    some = kombu.Queue(node.group(), exchange, routing_key="task.*", exclusive=True)
    every = kombu.Queue(node.group(), exchange, routing_key="#", exclusive=True)
    some, every = Taken(connect(), [some], no_ack=True), Taken(connect(), [every], no_ack=True)
    producer = connect().Producer()
    for key in ("task.done", "worker.here"):
        producer.publish(key, exchange=exchange, routing_key=key, declare=[exchange])
    every.wait(2)
    some.wait(1)
    assert every.bodies == ["task.done", "worker.here"]
    assert some.bodies == ["task.done"]


def test_a_reply_reaches_the_queue_that_asks_for_it(node: NodeThread, connect: Any) -> None:
    asking = connect()
    replies = kombu.Queue(node.group("replies"), exclusive=True)
    replies(asking.default_channel).declare()
    connect().Producer().publish("reply", exchange="", routing_key=replies.name)
    taken = Taken(asking, [replies], no_ack=True)
    taken.wait(1)
    assert taken.bodies == ["reply"]


def test_an_inherited_connection_takes_nothing_from_its_parent(connect: Any, queue: Any) -> None:
    connection = connect()
    publish(connection, queue, "mine")
    taken = Taken(connection, [queue])
    (message,) = taken.wait(1)
    child = os.fork()
    if child == 0:  # pragma: no cover - another process
        code = 1
        try:
            publish(connection, queue, "from the child")
            message.reject(requeue=True)
            connection.collect()
            connection.release()
            code = 0
        finally:
            os._exit(code)
    assert code_of_child(child) == 0
    assert taken.wait(2)[1].decode() == "from the child"
    taken.drain(0.5)
    assert len(taken.messages) == 2, "the child gave back what its parent holds"
    for each in taken.messages:
        each.ack()


def test_a_message_that_is_none_of_kombu_is_a_dead_letter(
    node: NodeThread, connect: Any, queue: Any
) -> None:
    publish(connect(), queue, "good")
    topic = queue.name.replace(".", "%2E")
    node.send(topic, b"\xff not of kombu")
    taken = Taken(connect(), [queue])
    taken.wait(1)
    taken.drain(0.5)
    assert taken.bodies == ["good"]
    taken.messages[0].ack()
    assert [each.body for each in node.messages(f"%DLQ%{topic}", 1)] == [b"\xff not of kombu"]


def test_a_broker_that_is_not_there_is_told_at_once() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with kombu.Connection(f"sprocket+rocketmq://127.0.0.1:{port}") as connection:
        with pytest.raises(connection.connection_errors) as failure:
            connection.connect()
        assert isinstance(failure.value, ConnectFailed)
        assert connection.as_uri() == f"sprocket+rocketmq://127.0.0.1:{port}"
    with pytest.raises(ConfigError):
        kombu.Connection("sprocket+rocketmq://h", transport_options={"nothing": 1}).connect()
    assert not shared_stations._stations


def test_an_address_shows_no_secret() -> None:
    url = "sprocket+rocketmq://me:word@a:1;b:2"
    assert kombu.Connection(url).as_uri() == "sprocket+rocketmq://a:1;b:2"
