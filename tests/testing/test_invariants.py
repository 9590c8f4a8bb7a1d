"""Each invariant holds where it should, and finds what it is there to find."""

from __future__ import annotations

import pytest

from sprocket.testing import invariants
from sprocket.testing.invariants import Violation
from sprocket.testing.journal import Journal
from sprocket.testing.loop import SimulatedLoop
from sprocket.testing.network import Network
from tests.testing.parts import QUEUE, stored


@pytest.fixture
def journal() -> Journal:
    """Three messages were sent and acknowledged at offsets 0 to 2; the first was consumed."""
    network = Network()
    SimulatedLoop(network).close()
    journal = Journal(network)
    for offset, key in enumerate(("k0", "k1", "k2")):
        journal.sending("p", key, key.encode())
        journal.acknowledge("p", key, QUEUE, offset)
    journal.deliver("c", stored(0, "k0"))
    journal.finish("c", stored(0, "k0"))
    return journal


def test_an_offset_may_stand_before_an_unfinished_message_but_not_behind(journal: Journal) -> None:
    invariants.offsets_pass_only_settled(journal, {QUEUE: 1})
    with pytest.raises(Violation, match=r"up to 2, but offset 1.*\n(.*\n)*the story of k1"):
        invariants.offsets_pass_only_settled(journal, {QUEUE: 2})


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


def test_what_was_acknowledged_reaches_a_listener(journal: Journal) -> None:
    with pytest.raises(Violation, match=r"2 acknowledged(.*\n)*.*is told orders@broker-0:0 offset"):
        invariants.acknowledged_is_consumed(journal)
    for offset in (1, 2):
        journal.finish("c", stored(offset, f"k{offset}"))
    invariants.acknowledged_is_consumed(journal)
