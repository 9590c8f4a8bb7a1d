"""The clients that pop, through kills, bad networks, members that come and go, a promotion."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from sprocket.client.popping.ack_queue import AckQueue
from sprocket.client.popping.pop_client import PopClient
from sprocket.client.popping.pop_feed import PopFeed
from sprocket.testing.plays import play
from sprocket.testing.popping import POPPING
from tests.sim.planting import Plant, assert_found


@pytest.mark.parametrize("name", POPPING)
def test_everything_is_done_and_nothing_that_was_acknowledged_comes_again(name: str) -> None:
    assert play(name, 1).delivered > 0


def acknowledges_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(AckQueue, "add", lambda self, message: None)


def renews_nothing(patch: pytest.MonkeyPatch) -> None:
    async def forever(self: PopFeed) -> None:
        await asyncio.sleep(1e9)

    patch.setattr(PopFeed, "_renew_loop", forever)


def acknowledges_at_once(patch: pytest.MonkeyPatch) -> None:
    right = PopFeed._arrived

    def arrived(self: PopFeed, number: int, messages: Any) -> None:
        for message in messages:
            self._parts.acks.add(message)
        right(self, number, messages)

    patch.setattr(PopFeed, "_arrived", arrived)


def forgets_the_order(patch: pytest.MonkeyPatch) -> None:
    right = PopClient._pop

    async def pop(self: PopClient, queue: Any, subscription: Any, wish: Any) -> Any:
        return await right(self, queue, subscription, wish._replace(attempt=None))

    patch.setattr(PopClient, "_pop", pop)


def claims_to_acknowledge(patch: pytest.MonkeyPatch) -> None:
    async def nothing(self: PopClient, message: Any, deadline: Any) -> None:
        return None

    patch.setattr(PopClient, "_acknowledge_one", nothing)


@pytest.mark.parametrize(
    ("plant", "name", "told", "seed"),
    [
        (acknowledges_nothing, "popping-calm", "was done .* times", 1),
        (renews_nothing, "popping-calm", "was done .* times", 1),
        (acknowledges_at_once, "popping-members", "was stored and never done", 13),
        (forgets_the_order, "popping-order", "began before", 1),
        (claims_to_acknowledge, "popping-simple", "was acknowledged and came again", 1),
    ],
)
def test_a_broken_promise_is_found(
    plant: Plant, name: str, told: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert_found(plant, name, told, monkeypatch, seed=seed)
