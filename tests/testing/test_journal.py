"""What a run's journal knows and tells."""

from __future__ import annotations

import asyncio

from sprocket.testing.journal import Journal
from sprocket.testing.loop import simulate
from sprocket.testing.network import Network
from tests.testing.parts import QUEUE


def test_a_story_has_the_message_and_what_happened_around_it() -> None:
    async def main(network: Network) -> str:
        journal = Journal(network)
        journal.note("weather", "long before")
        await asyncio.sleep(1.5)
        journal.sending("p", "k1", b"")
        journal.sending("p", "k2", b"")
        journal.note("weather", "kills broker-0")
        journal.acknowledge("p", "k1", QUEUE, 7)
        return journal.story("k1")

    assert simulate(main).splitlines() == [
        "the story of k1, stored at orders@broker-0:0 7",
        "    1.5000  p            sends k1",
        "    1.5000  weather      kills broker-0",
        "    1.5000  p            gets acknowledgement at orders@broker-0:0 offset 7 for k1",
    ]


def test_what_is_noted_is_part_of_the_history() -> None:
    async def main(network: Network) -> tuple[str, str]:
        before = network.history
        Journal(network).note("somebody", "does something")
        return before, network.history

    before, after = simulate(main)
    assert before != after
