"""Transactions of our producer at our broker, in virtual time; and the blocking face."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from sprocket.base.errors import ReplyError, SendFailed, UsageError
from sprocket.broker.config import BrokerConfig
from sprocket.client import blocking
from sprocket.client.transactional_producer import Outcome, Transaction, TransactionalProducer
from sprocket.message.message import Message, StoredMessage
from sprocket.standalone import Standalone
from sprocket.testing.cluster import Cluster
from sprocket.testing.loop import simulate
from sprocket.testing.network import Network
from sprocket.testing.observer import Observer

TOPIC = "orders"


class Stage:
    """A cluster with one broker, and what is seen there."""

    def __init__(self, network: Network) -> None:
        config = BrokerConfig(transaction_timeout_ms=1000, transaction_check_ms=1000)
        self.cluster = Cluster(network, 1, broker=config)
        self.observer = Observer(self.cluster, TOPIC, 1, group="g")

    def producer(self, name: str = "a", check: object = None) -> TransactionalProducer:
        _, world = self.cluster.client(name)
        servers = self.cluster.nameserver_addresses
        return TransactionalProducer("shop", nameservers=servers, world=world, check=check)  # type: ignore[arg-type]

    async def bodies(self) -> list[bytes]:
        stored = await self.observer.stored()
        return [message.body for messages in stored.values() for message in messages]


def play(test: Callable[[Stage], Awaitable[None]]) -> None:
    async def main(network: Network) -> None:
        stage = Stage(network)
        await stage.cluster.start()
        await stage.observer.create_topic()
        await test(stage)
        await stage.observer.close()
        await stage.cluster.stop()

    simulate(main)


def test_a_block_commits_and_an_error_rolls_back() -> None:
    async def test(stage: Stage) -> None:
        async with stage.producer() as producer:
            async with producer.transaction(Message(TOPIC, b"one", keys=["k"])) as transaction:
                assert transaction.id
                assert await stage.bodies() == []
            assert transaction.is_confirmed
            with pytest.raises(ZeroDivisionError):
                async with producer.transaction(Message(TOPIC, b"two")):
                    _ = 1 / 0
            async with producer.transaction(Message(TOPIC, b"three")) as transaction:
                transaction.roll_back()
            await asyncio.sleep(10)
            assert await stage.bodies() == [b"one"]

    play(test)


def test_a_cancellation_leaves_it_open_and_the_check_decides() -> None:
    asked: list[str] = []

    async def check(message: StoredMessage) -> Outcome:
        asked.append(message.keys[0])
        return Outcome.COMMIT if len(asked) > 1 else Outcome.UNKNOWN

    async def test(stage: Stage) -> None:
        async with stage.producer(check=check) as producer:

            async def work() -> None:
                async with producer.transaction(Message(TOPIC, b"one", keys=["k"])):
                    await asyncio.sleep(60)

            task = asyncio.ensure_future(work())
            await asyncio.sleep(5)
            assert asked == []  # while the work goes on, nobody else is asked
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await asyncio.sleep(5)
            assert asked == ["k", "k"]
            assert await stage.bodies() == [b"one"]

    play(test)


def test_an_end_that_was_not_heard_is_told_when_the_broker_asks() -> None:
    async def test(stage: Stage) -> None:
        async with stage.producer() as producer:
            (machine,) = stage.cluster.brokers
            async with producer.transaction(Message(TOPIC, b"one")) as transaction:
                machine.kill()
            assert not transaction.is_confirmed
            await machine.start()
            await asyncio.sleep(90)
            assert await stage.bodies() == [b"one"]

    play(test)


def test_another_member_answers_for_one_that_has_left() -> None:
    async def check(message: StoredMessage) -> Outcome:
        return Outcome.COMMIT

    async def test(stage: Stage) -> None:
        first = stage.producer("a")
        async with first, first.transaction(Message(TOPIC, b"one")) as transaction:
            transaction.leave_open()
        async with stage.producer("b", check) as second:
            await second.send(Message(TOPIC, b"plain"))
            await asyncio.sleep(40)
            assert sorted(await stage.bodies()) == [b"one", b"plain"]

    play(test)


@pytest.mark.parametrize("plain", [False, True], ids=["async", "plain"])
def test_a_check_that_fails_or_says_nonsense_leaves_it_open(plain: bool) -> None:
    failures = [ZeroDivisionError(), StopIteration(), SystemExit()]
    answers: list[object] = [*failures, None, "commit", Outcome.ROLLBACK]

    def answer(message: StoredMessage) -> object:
        answer = answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return answer

    async def answer_later(message: StoredMessage) -> object:
        return answer(message)

    check = answer if plain else answer_later

    async def test(stage: Stage) -> None:
        async with stage.producer(check=check) as producer:
            async with producer.transaction(Message(TOPIC, b"one")) as transaction:
                transaction.leave_open()
            await asyncio.sleep(10)
            assert answers == []
            assert await stage.bodies() == []

    play(test)


def test_the_listener_style_ends_as_its_function_says() -> None:
    async def test(stage: Stage) -> None:
        async def says(outcome: Outcome) -> Transaction:
            async def execute(transaction: Transaction) -> Outcome:
                assert transaction.sent is not None
                return outcome

            message = Message(TOPIC, outcome.name.encode())
            return await producer.send_in_transaction(message, execute, immunity_s=2)

        async def fails(transaction: Transaction) -> Outcome:
            raise ZeroDivisionError

        async with stage.producer() as producer:
            assert (await says(Outcome.COMMIT)).is_confirmed
            assert (await says(Outcome.ROLLBACK)).is_confirmed
            assert not (await says(Outcome.UNKNOWN)).is_confirmed
            with pytest.raises(ZeroDivisionError):
                await producer.send_in_transaction(Message(TOPIC, b"x"), fails)
            assert await stage.bodies() == [b"COMMIT"]

    play(test)


def test_what_cannot_be_is_refused_before_anything_is_sent() -> None:
    async def test(stage: Stage) -> None:
        async with stage.producer() as producer:
            with pytest.raises(UsageError, match="delayed"):
                producer.transaction(Message(TOPIC, b"x", delay_level=1))
            with pytest.raises(UsageError, match="immunity"):
                producer.transaction(Message(TOPIC, b"x"), immunity_s=-1)
            transaction = producer.transaction(Message(TOPIC, b"x"))
            async with transaction:
                with pytest.raises(UsageError, match="once"):
                    await transaction.__aenter__()

    play(test)


def test_the_work_does_not_begin_if_the_half_message_is_not_stored() -> None:
    async def test(stage: Stage) -> None:
        async with stage.producer() as producer:
            await producer.send(Message(TOPIC, b"plain"))
            stage.cluster.brokers[0].kill()
            with pytest.raises((SendFailed, ReplyError)):
                async with producer.transaction(Message(TOPIC, b"x")):
                    raise AssertionError("the work began")
            await stage.cluster.brokers[0].start()

    play(test)


@pytest.mark.process
def test_the_blocking_face(tmp_path: object) -> None:
    async def main() -> None:
        async with Standalone(store=str(tmp_path)) as node:
            await asyncio.to_thread(use, node.nameserver_address)

    def use(nameservers: str) -> None:
        with blocking.TransactionalProducer("shop", nameservers=nameservers) as producer:
            with producer.transaction(Message(TOPIC, b"one")) as transaction:
                pass
            assert transaction.is_confirmed
            with pytest.raises(ZeroDivisionError), producer.transaction(Message(TOPIC, b"two")):
                _ = 1 / 0
            producer.send_in_transaction(Message(TOPIC, b"three"), lambda _: Outcome.COMMIT)
        with blocking.PullConsumer("look", nameservers=nameservers) as reader:
            found = [
                message.body
                for queue in reader.queues(TOPIC)
                for message in reader.pull(queue, 0).messages
            ]
        assert sorted(found) == [b"one", b"three"]

    asyncio.run(main())
