"""Leases on queues, as a core."""

from __future__ import annotations

from collections import deque

from hypothesis import given
from hypothesis import strategies as some

from sprocket.broker.tables.queue_locks import TRUST_MS, QueueLocks
from sprocket.message.queue import QueueId
from sprocket.store.state.snapshot import decode_state, encode_state

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
    deque(locks.expiring(LEASE_MS + 1))
    locks.validate()
    assert locks.lock("g", "b", queues=QUEUES, now_ms=LEASE_MS + 1) == QUEUES
    locks.forget_group("g")
    locks.forget_group("nobody")
    locks.validate()


def test_what_has_run_out_is_forgotten_in_slices_between_which_leases_may_change() -> None:
    locks = QueueLocks(LEASE_MS)
    many = [QueueId("T", "b", number) for number in range(9_000)]
    locks.lock("g", "a", queues=many, now_ms=0)
    now_ms, slices = LEASE_MS + 1, 0
    for _ in locks.expiring(now_ms):
        slices += 1
        locks.lock("g", "a", queues=many[-1:], now_ms=now_ms)
        locks.validate()
        if slices == 2:
            locks.forget_group("g")
            locks.lock("g", "b", queues=many[-1:], now_ms=now_ms)
    assert slices == 4
    assert locks.lock("g", "c", queues=many, now_ms=now_ms) == many[:-1]
    locks.validate()


def restarted(locks: QueueLocks, saved_ms: int, now_ms: int = 0) -> QueueLocks:
    """What a broker has that starts at `now_ms` on its loop; the other one saved at `saved_ms`."""
    other = QueueLocks(LEASE_MS)
    other.load(decode_state(encode_state(locks.to_json(saved_ms))), now_ms)
    other.validate()
    return other


def test_leases_outlive_the_broker_for_as_long_as_their_holders_may_trust_them() -> None:
    locks = QueueLocks(LEASE_MS)
    locks.lock("g", "a", queues=QUEUES, now_ms=0)
    locks = restarted(locks, 0, 1_000_000)
    assert locks.lock("g", "b", queues=QUEUES, now_ms=1_000_000 + TRUST_MS) == []
    assert locks.lock("g", "a", queues=QUEUES[:1], now_ms=1_000_000 + TRUST_MS) == QUEUES[:1]
    assert locks.lock("g", "b", queues=QUEUES, now_ms=1_000_001 + TRUST_MS) == QUEUES[1:]


def test_restarts_again_and_again_hold_no_queue_for_a_client_that_is_gone() -> None:
    locks = QueueLocks(LEASE_MS)
    locks.lock("g", "gone", queues=QUEUES, now_ms=0)
    locks = restarted(locks, 0)
    for _ in range(3):  # 30 s in all
        locks = restarted(locks, 10_000)
        assert locks.is_changed
        assert locks.has_silent
    assert locks.lock("g", "b", queues=QUEUES, now_ms=4_999) == []
    assert locks.lock("g", "b", queues=QUEUES, now_ms=5_001) == QUEUES


def test_a_client_that_was_heard_of_begins_anew_at_the_next_restart() -> None:
    locks = QueueLocks(LEASE_MS)
    locks.lock("g", "a", queues=QUEUES, now_ms=0)
    locks = restarted(locks, 0)
    locks.lock("g", "a", queues=QUEUES, now_ms=30_000)
    assert not locks.has_silent
    locks = restarted(locks, 30_000)
    assert locks.lock("g", "b", queues=QUEUES, now_ms=TRUST_MS) == []


def test_a_client_whose_connection_is_gone_is_waited_for_only_while_it_may_go_on() -> None:
    locks = QueueLocks(LEASE_MS)
    locks.lock("g", "a", queues=QUEUES, now_ms=0)
    locks.part("a")
    assert locks.lock("g", "b", queues=QUEUES, now_ms=TRUST_MS) == []
    assert locks.lock("g", "b", queues=QUEUES, now_ms=TRUST_MS + 1) == QUEUES


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
            deque(locks.expiring(now_ms))
        locks.validate()
