"""The blocking face: real threads, real sockets, real forks."""

from __future__ import annotations

import asyncio
import inspect
import multiprocessing
import pickle
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from sprocket.base.errors import ClosedError, SendFailed, UsageError
from sprocket.client import lite_pull_consumer as lite
from sprocket.client import producer
from sprocket.client import pull_consumer as manual
from sprocket.client import push_consumer as plain_consumer
from sprocket.client import simple_consumer as simple
from sprocket.client import transactional_producer as transactional
from sprocket.client.base.subscription import Later
from sprocket.client.blocking import (
    LitePullConsumer,
    Producer,
    PullConsumer,
    PushConsumer,
    SimpleConsumer,
    TransactionalProducer,
)
from sprocket.client.config import ProducerConfig
from sprocket.message.message import Message, StoredMessage
from sprocket.message.record import decode
from sprocket.protocol.command import Reply
from sprocket.protocol.requests.pop import AckMessages, PopMessage, PopReply
from sprocket.protocol.requests.send import SendBack
from tests.client.fakes import FakeBroker, queue_of
from tests.client.test_simple_consumer import popped
from tests.support import LONGEST

pytestmark = pytest.mark.process


@pytest.fixture
def broker() -> Iterator[FakeBroker]:
    """A broker in a thread of its own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    async def start() -> FakeBroker:
        return await FakeBroker({"orders": 1}).__aenter__()

    made = asyncio.run_coroutine_threadsafe(start(), loop).result(LONGEST)
    yield made
    asyncio.run_coroutine_threadsafe(made.__aexit__(), loop).result(LONGEST)
    loop.call_soon_threadsafe(loop.stop)
    thread.join(LONGEST)
    loop.close()


def test_sends_and_pulls_wait_for_their_results(broker: FakeBroker) -> None:
    with Producer("senders", nameservers=broker.address) as sender:
        sent = sender.send(Message("orders", b"one", tag="new"))
        assert (sent.queue, sent.queue_offset) == (queue_of("orders"), 0)
        assert len(sender.send_batch([Message("orders", b"two"), Message("orders", b"three")])) == 2
        assert sender.queues("orders") == [queue_of("orders")]
        with pytest.raises(UsageError):
            sender.send(Message("orders", b""))
    with PullConsumer("audit", nameservers=broker.address) as reader:
        (queue,) = reader.queues("orders")
        pulled = reader.pull(queue, reader.min_offset(queue))
        assert [message.body for message in pulled.messages] == [b"one", b"two", b"three"]
        reader.commit(queue, pulled.next_offset)
        assert reader.committed(queue) == 3
    with pytest.raises(ClosedError):
        reader.pull(queue, 0)


def test_many_threads_share_one_producer(broker: FakeBroker) -> None:
    with Producer("senders", nameservers=broker.address) as sender, ThreadPoolExecutor(8) as pool:
        sends = [pool.submit(sender.send, Message("orders", b"%d" % n)) for n in range(200)]
        offsets = {send.result(LONGEST).queue_offset for send in sends}
    assert offsets == set(range(200))
    assert len({bytes(body) for body in broker.bodies("orders")}) == 200


def test_plain_functions_listen_in_threads(broker: FakeBroker) -> None:
    got: list[tuple[str, int]] = []
    enough = threading.Event()
    with PushConsumer("readers", nameservers=broker.address, start="first") as consumer:

        @consumer.on("orders")
        def take(message: StoredMessage) -> Later | None:
            got.append((threading.current_thread().name, message.reconsume_times))
            if message.reconsume_times == 0:
                return Later()
            enough.set()
            return None

        with Producer("senders", nameservers=broker.address) as sender:
            sender.send(Message("orders", b"one"))
        assert enough.wait(LONGEST)
        assert queue_of("orders") in consumer.queues
        assert consumer.client_id
    assert [times for _, times in got] == [0, 1]
    assert all("listener" in name for name, _ in got)


def test_a_batch_listener_and_iteration_work_too(broker: FakeBroker) -> None:
    with Producer("senders", nameservers=broker.address) as sender:
        for number in range(3):
            sender.send(Message("orders", b"%d" % number))
    enough = threading.Event()
    with PushConsumer("batches", nameservers=broker.address, start="first") as consumer:

        @consumer.on("orders", batch=10)
        def take(messages: list[StoredMessage]) -> None:
            if messages[-1].queue_offset == 2:
                enough.set()

        assert enough.wait(LONGEST)
    bodies = []
    with PushConsumer("iterators", nameservers=broker.address, start="first") as consumer:
        consumer.subscribe("orders")
        for message in consumer:
            bodies.append(message.body)
            if len(bodies) == 3:
                break
    assert bodies == [b"0", b"1", b"2"]


def test_threads_receive_and_acknowledge(broker: FakeBroker) -> None:
    with Producer("senders", nameservers=broker.address) as sender:
        for number in range(3):
            sender.send(Message("orders", b"%d" % number))
    stored = [decode(record, 0, broker.name) for record in broker.queue("orders").records]
    replies = [popped(broker, *stored)]
    empty = PopReply(pop_time=0, invisible_time=0, revive_qid=0, rest_num=0)
    broker.more[PopMessage.code] = lambda c, p: replies.pop() if replies else Reply(empty, code=210)
    broker.more[AckMessages.code] = lambda c, p: Reply()
    with SimpleConsumer("workers", nameservers=broker.address, start="first") as consumer:
        consumer.subscribe("orders")
        messages = consumer.receive(8, invisible_ms=30_000)
        assert [message.body for message in messages] == [b"0", b"1", b"2"]
        consumer.ack(messages)
        assert consumer.receive(wait_ms=10) == []
        assert consumer.statistics().topics["orders"].consumed == 3
        assert consumer.client_id is not None
    assert broker.count(AckMessages) == 1


def test_a_listener_on_the_loop_may_not_wait_for_the_loop(broker: FakeBroker) -> None:
    errors: list[Exception] = []
    enough = threading.Event()
    sender = Producer("senders", nameservers=broker.address)
    with sender, PushConsumer("readers", nameservers=broker.address, start="first") as consumer:

        @consumer.on("orders")
        async def take(message: StoredMessage) -> None:
            try:
                sender.send(Message("orders", b"deadlock"))
            except UsageError as error:
                errors.append(error)
            enough.set()

        sender.send(Message("orders", b"one"))
        assert enough.wait(LONGEST)
    assert errors


def test_a_failure_reaches_the_caller() -> None:
    config = ProducerConfig(send_timeout_ms=200)
    with (
        Producer("senders", nameservers="127.0.0.1:1", config=config) as sender,
        pytest.raises(SendFailed),
    ):
        sender.send(Message("orders", b"one"))


def _send_in_child(sender: Producer, results: multiprocessing.Queue[object]) -> None:
    results.put(sender.send(Message("orders", b"child")).message_id)


def _send_by_threads(sender: Producer, results: multiprocessing.Queue[object]) -> None:
    """All at once, so that each may find that the process is another."""
    count = 8
    at_once = threading.Barrier(count)

    def send(number: int) -> object:
        at_once.wait(LONGEST)
        return sender.send(Message("orders", b"%d" % number)).message_id

    with ThreadPoolExecutor(count) as threads:
        told = threads.map(send, range(count))
        try:
            results.put(len(set(told)))
        except Exception as error:  # told to the parent
            results.put(repr(error))


def _consume_in_child(consumer: PushConsumer, results: multiprocessing.Queue[object]) -> None:
    try:
        consumer.subscribe("orders")
    except ClosedError as error:
        results.put(str(error))


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_goes_on_with_connections_of_its_own(broker: FakeBroker) -> None:
    forking = multiprocessing.get_context("fork")
    results: multiprocessing.Queue[object] = forking.Queue()
    with Producer("senders", nameservers=broker.address) as sender:
        mine = sender.send(Message("orders", b"parent")).message_id
        children = [
            forking.Process(target=_send_in_child, args=(sender, results)) for _ in range(2)
        ]
        for child in children:
            child.start()
        theirs = [results.get(timeout=LONGEST) for _ in children]
        for child in children:
            child.join(LONGEST)
            assert child.exitcode == 0
        assert len({mine, *theirs}) == 3, "unique over processes"
        assert sender.send(Message("orders", b"parent again")).queue_offset == 3


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_threads_of_a_forked_child_share_one_client_from_the_start(broker: FakeBroker) -> None:
    forking = multiprocessing.get_context("fork")
    results: multiprocessing.Queue[object] = forking.Queue()
    with Producer("senders", nameservers=broker.address) as sender:
        sender.send(Message("orders", b"parent"))
        for _ in range(3):
            child = forking.Process(target=_send_by_threads, args=(sender, results))
            child.start()
            assert results.get(timeout=LONGEST) == 8
            child.join(LONGEST)


def test_a_client_is_not_sent_to_another_process() -> None:
    for client in (Producer, producer.Producer, LitePullConsumer, lite.LitePullConsumer):
        with pytest.raises(TypeError, match="stays in its process"):
            pickle.dumps(client("g", nameservers="127.0.0.1:9"))


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_push_consumer_stays_with_its_process(broker: FakeBroker) -> None:
    forking = multiprocessing.get_context("fork")
    results: multiprocessing.Queue[object] = forking.Queue()
    with PushConsumer("readers", nameservers=broker.address) as consumer:
        child = forking.Process(target=_consume_in_child, args=(consumer, results))
        child.start()
        assert "belongs to the process" in str(results.get(timeout=LONGEST))
        child.join(LONGEST)


_NEVER_CLOSED = """
import sys, threading
import concurrent.futures.thread

if sys.argv[2] == "late":  # as a Python would have it that has no place before its threads' end
    del threading._register_atexit

from sprocket.client.blocking import LitePullConsumer, Producer, PushConsumer
from sprocket.client.config import ConsumerConfig
from sprocket.message.message import Message

begun, config = threading.Event(), ConsumerConfig(concurrency=1, drain_ms=200)
consumer = PushConsumer("g", nameservers=sys.argv[1], start="first", config=config)
consumer.subscribe("orders", listener=lambda message: begun.set())
consumer.start()
reader = LitePullConsumer("l", nameservers=sys.argv[1], start="first")
reader.start()
producer = Producer("p", nameservers=sys.argv[1])
producer.start()
for _ in range(200):
    producer.send(Message("orders", b"x"), key="same")
assert begun.wait(60)
"""


@pytest.mark.parametrize("when", ["early", "late"])
def test_who_never_closes_ends_in_order_and_nothing_fails_for_it(
    broker: FakeBroker, when: str
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _NEVER_CLOSED, broker.address, when],
        capture_output=True, text=True, timeout=LONGEST, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert broker.count(SendBack) == 0
    assert broker.members.get("g", []) == []
    assert max(broker.committed.values()) > 0


@pytest.mark.parametrize(
    ("face", "client"),
    [
        (Producer, producer.Producer),
        (TransactionalProducer, transactional.TransactionalProducer),
        (PullConsumer, manual.PullConsumer),
        (PushConsumer, plain_consumer.PushConsumer),
        (LitePullConsumer, lite.LitePullConsumer),
        (SimpleConsumer, simple.SimpleConsumer),
    ],
)
def test_every_method_has_its_blocking_twin_with_the_same_signature(
    face: type, client: type
) -> None:
    for name, method in inspect.getmembers(client, inspect.isfunction):
        if name.startswith("_"):
            continue
        twin = getattr(face, name)
        if name not in ("start", "close", "on", "transaction"):
            assert inspect.signature(twin) == inspect.signature(method), name
            assert twin.__doc__ == method.__doc__
    mine = inspect.signature(face.__init__).parameters  # type: ignore[misc]
    theirs = inspect.signature(client.__init__).parameters  # type: ignore[misc]
    assert list(mine) == list(theirs)
