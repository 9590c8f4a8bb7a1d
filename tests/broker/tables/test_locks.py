"""Locking and unlocking queues through the door."""

from __future__ import annotations

from sprocket.protocol.bodies import LockBody, LockedBody, Queue
from sprocket.protocol.requests.lock import LockQueues, UnlockQueues
from tests.broker.parts import SUCCESS, Asker, play

QUEUES = [Queue(broker_name="b", queue_id=number, topic="T") for number in range(2)]


def body(client_id: str, queues: list[Queue] = QUEUES) -> bytes:
    return LockBody(client_id=client_id, consumer_group="g", mq_set=queues).encode()


async def lock(asker: Asker, client_id: str) -> list[Queue]:
    reply = await asker.call(LockQueues(), body(client_id))
    assert reply.code == SUCCESS
    return LockedBody.decode(reply.body).locked


def test_queues_are_locked_for_one_client_and_come_back() -> None:
    async def test(asker: Asker) -> None:
        assert await lock(asker, "a") == QUEUES
        assert await lock(asker, "b") == []
        assert await asker.code(UnlockQueues(), body("b")) == SUCCESS
        assert await lock(asker, "b") == []
        assert await asker.code(UnlockQueues(), body("a", QUEUES[:1])) == SUCCESS
        assert await lock(asker, "b") == QUEUES[:1]

    play(test)


def test_a_lock_without_names_is_refused() -> None:
    async def test(asker: Asker) -> None:
        assert await asker.code(LockQueues(), b"{}") == 1
        assert await asker.code(LockQueues(), b"") == 1

    play(test)
