"""The keys, leases and revisions behind the simulated servers of keys."""

from __future__ import annotations

import asyncio

from sprocket.election.leased_keys import Compare, Delete, Put
from sprocket.testing.key_state import KeyState
from sprocket.testing.loop import simulate
from sprocket.testing.network import Network


def test_a_transaction_is_made_only_if_each_comparison_holds() -> None:
    state = KeyState()
    made = state.transact([Compare("a", 0)], [Put("a", "1", 0)])
    assert made is not None
    assert made.is_done
    refused = state.transact([Compare("a", 0)], [Put("a", "2", 0)])
    assert refused is not None
    assert not refused.is_done
    assert state.get("a").keys["a"].value == "1"
    state.transact([Compare("a", made.revision)], [Delete("a")])
    assert not state.get("").keys


def test_keys_end_with_their_lease_and_a_kept_lease_does_not_end() -> None:
    async def main(network: Network) -> None:
        state = KeyState()
        lease, _ = state.grant(3.0)
        state.transact([], [Put("a", "1", lease)])
        await asyncio.sleep(2)
        state.keep_alive(lease)
        await asyncio.sleep(2)
        assert "a" in state.get("").keys
        await asyncio.sleep(2)
        assert not state.get("").keys
        assert state.transact([], [Put("a", "1", lease)]) is None, "the lease has ended"

    simulate(main)


def test_changes_that_were_forgotten_are_not_told() -> None:
    state = KeyState()
    state.transact([], [Put("a/1", "1", 0)])
    state.transact([], [Put("b/1", "1", 0)])
    assert state.changes("a/", 2) == [2]
    state.compact()
    assert state.changes("a/", 2) is None
