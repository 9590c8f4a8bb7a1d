"""Leases on queues, as a core."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as some

from sprocket.broker.queue_locks import QueueLocks
from sprocket.message.queue import QueueId

QUEUES = [QueueId("T", "b", number) for number in range(4)]
LEASE_MS = 60_000


def test_a_queue_belongs_to_one_client_until_it_is_given_back() -> None:
    locks = QueueLocks(LEASE_MS)
    assert locks.lock("g", "a", queues=QUEUES[:3], now_ms=0) == QUEUES[:3]
    assert locks.lock("g", "b", queues=QUEUES, now_ms=1) == QUEUES[3:]
    locks.unlock("g", "b", QUEUES[:1])
    assert locks.lock("g", "b", queues=QUEUES[:1], now_ms=2) == []
    locks.unlock("g", "a", QUEUES[:1])
    assert locks.lock("g", "b", queues=QUEUES[:1], now_ms=3) == QUEUES[:1]


def test_another_group_has_leases_of_its_own() -> None:
    locks = QueueLocks(LEASE_MS)
    locks.lock("g", "a", queues=QUEUES, now_ms=0)
    assert locks.lock("h", "b", queues=QUEUES, now_ms=0) == QUEUES


def test_a_lease_runs_out_unless_it_is_renewed() -> None:
    locks = QueueLocks(LEASE_MS)
    locks.lock("g", "a", queues=QUEUES[:2], now_ms=0)
    locks.lock("g", "a", queues=QUEUES[:1], now_ms=LEASE_MS)
    assert locks.lock("g", "b", queues=QUEUES[:2], now_ms=LEASE_MS + 1) == QUEUES[1:2]


def test_a_group_is_ordered_while_a_member_holds_a_queue() -> None:
    locks = QueueLocks(LEASE_MS)
    assert not locks.is_ordered("g", 0)
    locks.lock("g", "a", queues=QUEUES, now_ms=0)
    assert locks.is_ordered("g", LEASE_MS)
    assert not locks.is_ordered("g", LEASE_MS + 1)


def test_what_has_run_out_is_forgotten() -> None:
    locks = QueueLocks(LEASE_MS)
    locks.lock("g", "a", queues=QUEUES, now_ms=0)
    locks.lock("h", "a", queues=QUEUES[:1], now_ms=LEASE_MS)
    locks.expire(LEASE_MS + 1)
    locks.validate()
    assert locks.lock("g", "b", queues=QUEUES, now_ms=LEASE_MS + 1) == QUEUES
    locks.forget_group("g")
    locks.forget_group("nobody")
    locks.validate()


steps = some.lists(
    some.tuples(
        some.sampled_from(["lock", "unlock", "expire"]),
        some.sampled_from(["a", "b", "c"]),
        some.lists(some.sampled_from(QUEUES), max_size=4),
        some.integers(0, 40_000),
    ),
    max_size=30,
)


@given(steps)
def test_no_queue_ever_has_two_holders(history: list[tuple[str, str, list[QueueId], int]]) -> None:
    locks = QueueLocks(LEASE_MS)
    now_ms = 0
    held: dict[QueueId, tuple[str, int]] = {}
    for verb, client, queues, pause_ms in history:
        now_ms += pause_ms
        if verb == "lock":
            for queue in locks.lock("g", client, queues=queues, now_ms=now_ms):
                holder, since_ms = held.get(queue, (client, now_ms))
                assert holder == client or now_ms - since_ms > LEASE_MS
                held[queue] = (client, now_ms)
        elif verb == "unlock":
            locks.unlock("g", client, queues)
            for queue in queues:
                if held.get(queue, ("", 0))[0] == client:
                    del held[queue]
        else:
            locks.expire(now_ms)
        locks.validate()
