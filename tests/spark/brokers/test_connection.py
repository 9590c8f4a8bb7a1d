from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterator

import pytest

from sprocket.base.errors import (
    CallTimeout,
    ConnectFailed,
    ConnectionLost,
    RemoteProtocolError,
    TopicNotFound,
)
from sprocket.message.queue import QueueId
from sprocket.protocol.requests.offset import MaxOffset, OffsetReply
from sprocket.protocol.requests.route import RouteOfTopic
from sprocket.spark.brokers.connection import BlockingConnection
from tests.spark.support import FakeBroker, Shelf, hang_up, serving
from tests.support import LONGEST


@pytest.fixture
def broker() -> Iterator[FakeBroker]:
    shelves = {QueueId("orders", "broker-a", n): Shelf([], first=n) for n in range(200)}
    with serving(FakeBroker(shelves)) as broker:
        yield broker


def question(number: int) -> MaxOffset:
    return MaxOffset(topic="orders", queue_id=number, bname="broker-a")


def test_many_questions_travel_together_and_answers_keep_their_order(broker: FakeBroker) -> None:
    with BlockingConnection(broker.address, timeout_s=60) as wire:
        replies = wire.call_all([question(n) for n in range(200)])
    assert [reply.read(OffsetReply).offset for reply in replies] == list(range(200))


def test_answers_may_be_fetched_in_any_order(broker: FakeBroker) -> None:
    with BlockingConnection(broker.address, timeout_s=60) as wire:
        numbers = [wire.send(question(n)) for n in range(3)]
        found = [wire.receive(number).read(OffsetReply).offset for number in reversed(numbers)]
    assert found == [2, 1, 0]


def test_a_refusal_is_raised_as_its_own_error(broker: FakeBroker) -> None:
    with BlockingConnection(broker.address, timeout_s=60) as wire, pytest.raises(TopicNotFound):
        wire.ask(RouteOfTopic(topic="nothing"))


def test_a_hang_up_is_a_lost_connection(broker: FakeBroker) -> None:
    broker.fault = lambda _: hang_up
    with BlockingConnection(broker.address, timeout_s=60) as wire, pytest.raises(ConnectionLost):
        wire.ask(question(0))


def test_nobody_there() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        with pytest.raises(ConnectFailed, match=r"127\.0\.0\.1"):
            BlockingConnection(f"127.0.0.1:{taken.getsockname()[1]}", timeout_s=60)
    for address in ("nowhere", "host:0", "host:port"):
        with pytest.raises(ConnectFailed):
            BlockingConnection(address, timeout_s=60)


def answered_with(
    data: bytes, ask: Callable[[BlockingConnection], object], *, timeout_s: float = 60
) -> None:
    """Calls `ask` with a wire whose other side sends `data` and then nothing."""
    done = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.sendall(data)
                done.wait(LONGEST)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            with BlockingConnection(
                f"127.0.0.1:{server.getsockname()[1]}", timeout_s=timeout_s
            ) as wire:
                ask(wire)
        finally:
            done.set()
            thread.join()


@pytest.mark.parametrize(
    "data",
    [
        struct.pack(">iI", -1, 0),
        struct.pack(">iI", 1 << 30, 10),
        struct.pack(">iI", 8, 100),
        struct.pack(">iI", 10, 6) + b"nonono",
        struct.pack(">iI", 10, 7 << 24 | 6) + b"nonono",
    ],
)
def test_nonsense_is_a_clear_error(data: bytes) -> None:
    with pytest.raises(RemoteProtocolError):
        answered_with(data, lambda wire: wire.ask(question(0)))


def test_silence_ends_with_the_time() -> None:
    with pytest.raises(CallTimeout):
        answered_with(b"\0\0", lambda wire: wire.ask(question(0)), timeout_s=0.2)
