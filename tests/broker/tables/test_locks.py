"""Locking and unlocking queues through the door."""

from __future__ import annotations

from sprocket.base.deadline import loop_ms
from sprocket.broker.tables.locks import LockTable
from sprocket.broker.tables.queue_locks import QueueLocks
from sprocket.message.queue import QueueId
from sprocket.protocol.bodies import LockBody, LockedBody, Queue
from sprocket.protocol.requests.lock import LockQueues, UnlockQueues
from sprocket.testing.loop import simulate
from tests.broker.parts import SUCCESS, Asker, play

QUEUES = [Queue(broker_name="broker-a", queue_id=number, topic="T") for number in range(2)]


def body(client_id: str, queues: list[Queue] = QUEUES) -> bytes:
    return LockBody(client_id=client_id, consumer_group="g", mq_set=queues).encode()


async def lock(asker: Asker, client_id: str, queues: list[Queue] = QUEUES) -> list[Queue]:
    reply = await asker.call(LockQueues(), body(client_id, queues))
    assert reply.code == SUCCESS
    return LockedBody.decode(reply.body).locked


def test_queues_are_locked_for_one_client_and_come_back() -> None:
    async def test(asker: Asker) -> None:
        await asker.create("T", queues=2)
        assert await lock(asker, "a") == QUEUES
        assert await lock(asker, "b") == []
        assert await asker.code(UnlockQueues(), body("b")) == SUCCESS
        assert await lock(asker, "b") == []
        assert await asker.code(UnlockQueues(), body("a", QUEUES[:1])) == SUCCESS
        assert await lock(asker, "b") == QUEUES[:1]

    play(test)


def test_queues_that_this_broker_does_not_have_are_not_leased() -> None:
    async def test(asker: Asker) -> None:
        await asker.create("T", queues=2)
        for broker, number, topic in (("zzz", 0, "T"), ("broker-a", 2, "T"), ("broker-a", 0, "N")):
            other = Queue(broker_name=broker, queue_id=number, topic=topic)
            assert await lock(asker, "a", [*QUEUES, other]) == QUEUES
        assert await asker.code(LockQueues(), body("a" * 1025)) == 1

    play(test)


def test_a_lock_without_names_is_refused() -> None:
    async def test(asker: Asker) -> None:
        assert await asker.code(LockQueues(), b"{}") == 1
        assert await asker.code(LockQueues(), b"") == 1

    play(test)


def test_who_holds_a_queue_at_the_slave_that_stood_for_the_master_holds_it_there() -> None:
    async def main() -> None:
        own, other = QueueLocks(60_000), QueueLocks(60_000)
        first, second, third = (QueueId("t", "broker-a", number) for number in range(3))
        own.lock("g", "one", queues=[first, second], now_ms=loop_ms())
        other.lock("g", "two", queues=[second, third], now_ms=loop_ms())
        slave = LockTable(other)
        LockTable(own).take_over(slave.held())
        own.validate()
        for client, held in (("two", [second, third]), ("one", [first])):
            asked = [first, second, third]
            assert own.lock("g", client, queues=asked, now_ms=loop_ms()) == held

    simulate(lambda network: main())


def test_a_slave_goes_back_to_what_it_copied_when_it_stands_for_nobody() -> None:
    async def main() -> None:
        locks = QueueLocks(60_000)
        table, queue = LockTable(locks), QueueId("t", "broker-a", 0)
        table.begin_copy()
        table.copy("g", {"one": ["0\tbroker-a\tt"]})
        assert not table.is_own
        table.act()
        assert table.is_own
        assert not locks.lock("g", "two", queues=[queue], now_ms=loop_ms())
        table.end_act()
        assert not table.is_own
        table.end_copy()
        assert table.is_own
        assert not locks.lock("g", "two", queues=[queue], now_ms=loop_ms())
        locks.validate()

    simulate(lambda network: main())
