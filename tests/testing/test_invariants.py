"""Each invariant holds where it should, and finds what it is there to find."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from sprocket.message.message import StoredMessage
from sprocket.message.queue import QueueId
from sprocket.testing import invariants
from sprocket.testing.groups import GroupRecord
from sprocket.testing.invariants import Violation
from sprocket.testing.journal import Journal
from sprocket.testing.loop import SimulatedLoop
from sprocket.testing.members import Style
from sprocket.testing.network import Network
from sprocket.testing.owners import Owners
from sprocket.testing.process import SimulatedProcess
from tests.testing.parts import QUEUE, stored


@pytest.fixture
def journal() -> Journal:
    """Three messages were sent and acknowledged at offsets 0 to 2."""
    network = Network()
    SimulatedLoop(network).close()
    journal = Journal(network)
    for offset, key in enumerate(("k0", "k1", "k2")):
        journal.sending("p", key, key.encode())
        journal.acknowledge("p", key, QUEUE, offset)
    return journal


def test_a_stored_queue_has_no_gaps_and_no_strangers(journal: Journal) -> None:
    invariants.stored_is_dense_and_true(journal, {QUEUE: [stored(0, "k0"), stored(1, "k1")]})
    with pytest.raises(Violation, match="at 1"):
        invariants.stored_is_dense_and_true(journal, {QUEUE: [stored(0, "k0"), stored(2, "k2")]})
    with pytest.raises(Violation, match="not what k0 was sent as"):
        invariants.stored_is_dense_and_true(journal, {QUEUE: [stored(0, "k0", b"forged")]})
    with pytest.raises(Violation, match="not what x was sent as"):
        invariants.stored_is_dense_and_true(journal, {QUEUE: [stored(0, "x")]})


def test_an_acknowledged_message_lies_where_the_sender_was_told(journal: Journal) -> None:
    there = [stored(0, "k0"), stored(1, "k1"), stored(2, "k2")]
    invariants.acknowledged_is_stored(journal, {QUEUE: there})
    with pytest.raises(Violation, match="k2 was acknowledged and is lost"):
        invariants.acknowledged_is_stored(journal, {QUEUE: there[:2]})
    with pytest.raises(Violation, match="k1 was acknowledged"):
        invariants.acknowledged_is_stored(journal, {QUEUE: [there[0], there[2], there[1]]})


def record_of(journal: Journal) -> GroupRecord:
    return journal.group("g", ("orders",))


def test_a_groups_offset_may_not_pass_what_is_neither_finished_nor_given_back(
    journal: Journal,
) -> None:
    record = record_of(journal)
    record.settle(record.begin("c", stored(0, "k0")))
    record.begin("c", stored(1, "k1"))
    invariants.committed_passes_only_settled(journal, record, {QUEUE: 1})
    with pytest.raises(Violation, match=r"up to 2 in orders@broker-0:0, but offset 1"):
        invariants.committed_passes_only_settled(journal, record, {QUEUE: 2})


def test_a_reset_takes_back_what_was_settled_before_it(journal: Journal) -> None:
    record = record_of(journal)
    call = record.begin("c", stored(1, "k1"))
    record.settle(record.begin("c", stored(0, "k0")))
    journal._network.loop.advance(1.0)
    record.move(QUEUE, 0, end=3)
    record.settle(call)  # it was under way
    with pytest.raises(Violation, match="offset 0"):
        invariants.committed_passes_only_settled(journal, record, {QUEUE: 1})
    with pytest.raises(Violation, match="offset 0 did not come after that"):
        invariants.a_move_is_obeyed(journal, record, {QUEUE: 1})


def test_two_members_at_one_ordered_queue_are_found(journal: Journal) -> None:
    record = record_of(journal)
    first = record.begin("a", stored(0, "k0"))
    record.end(first, "done")
    record.settle(first)
    record.begin("a", stored(1, "k1"))
    invariants.a_queue_has_one_owner(journal, record)
    record.begin("b", stored(1, "k1"))
    with pytest.raises(Violation, match=r"b gets .* offset 1 .* while a is at offset 1"):
        invariants.a_queue_has_one_owner(journal, record)


def test_a_message_before_its_predecessor_is_done_is_found(journal: Journal) -> None:
    record = record_of(journal)
    record.begin("a", stored(0, "k0"))
    invariants.a_queue_is_in_order(journal, record)
    record.begin("a", stored(1, "k1"))
    with pytest.raises(Violation, match=r"offset 1 .*before all that lies before it"):
        invariants.a_queue_is_in_order(journal, record)


def test_a_dead_letter_comes_after_exactly_as_many_tries_as_are_allowed(journal: Journal) -> None:
    record = record_of(journal)
    journal.failures |= {"k0": 9, "k1": 1}

    def check(dead: dict[str, int]) -> None:
        invariants.failed_ends_within_limit(journal, record, limit=1, dead=dead)

    record.begin("c", stored(0, "k0"))
    with pytest.raises(Violation, match="k0 failed 0 times of 1 and is a dead letter 1x"):
        check({"k0": 1})
    retried = stored(0, "k0")
    retried.reconsume_times = 1
    record.begin("c", retried)
    check({"k0": 1})
    with pytest.raises(Violation, match="k1 fails only 1 times and is a dead letter"):
        check({"k0": 1, "k1": 1})
    retried.reconsume_times = 2
    record.begin("c", retried)
    with pytest.raises(Violation, match="was offered again 2 times, 1 is the limit"):
        check({"k0": 1})


def test_what_came_twice_or_never_or_early_from_a_delay_is_found(journal: Journal) -> None:
    def delayed(topic: str, stored_ms: int) -> StoredMessage:
        message = stored(0, "k0")
        message.properties["REAL_TOPIC"] = "orders"
        message.queue = QueueId(topic, "broker-0", 0)
        message.stored_ms = stored_ms
        return message

    waiting, once = [delayed("SCHEDULE_TOPIC_XXXX", 0)], [delayed("orders", 1000)]
    invariants.delayed_comes_once(journal, waiting, once)
    for arrived in ([], once * 2):
        with pytest.raises(Violation, match=f"and came {len(arrived)} times"):
            invariants.delayed_comes_once(journal, waiting, arrived)
    invariants.delayed_is_not_early(journal, waiting, once, delays_ms=[1000])
    with pytest.raises(Violation, match="k0 came 1 ms early"):
        invariants.delayed_is_not_early(journal, waiting, once, delays_ms=[1001])


def test_a_queue_with_two_owners_is_noticed(journal: Journal) -> None:
    record = record_of(journal)
    members = [
        SimpleNamespace(process=SimulatedProcess(name, name), queues=[QUEUE]) for name in "ab"
    ]
    group: Any = SimpleNamespace(style=Style("g"), members=members[:1], records=[record], name="g")
    owners = Owners(journal, [group], lambda _: [QUEUE])
    for there in (members[:1], members, members, members[:1]):
        group.members = there
        owners._measure()
        journal._network.loop.advance(2.0)
    assert dict(record.overlaps) == {"other": [4.0]}
    invariants.owners_do_not_overlap(journal, record, seconds_max=4.0)
    with pytest.raises(Violation, match=r"g had two owners for 4.0 s, after a other, 3 s"):
        invariants.owners_do_not_overlap(journal, record, seconds_max=3.0)
