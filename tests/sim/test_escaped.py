"""A slave that stands for its master delivers at another one: nothing is lost, nor comes twice."""

from __future__ import annotations

import pytest

from sprocket.broker.members.escape import Escape
from sprocket.broker.members.escape_send import DueMessage, EscapeSender
from sprocket.broker.tables.escaped import EscapedTable
from sprocket.protocol.command import Command, Reply
from sprocket.remoting.transport import Peer
from sprocket.testing.escaped import ESCAPED
from sprocket.testing.plays import play
from tests.sim.planting import Plant, assert_found

SEEDS_PER_TEST = 2


@pytest.mark.parametrize("name", ESCAPED)
def test_what_falls_due_without_a_master_is_delivered_elsewhere(name: str) -> None:
    for seed in range(1, 1 + SEEDS_PER_TEST):
        assert play(name, seed).delivered > 0


def hands_back_nothing(patch: pytest.MonkeyPatch) -> None:
    empty = EscapedTable().packed()
    patch.setattr(EscapedTable, "packed", lambda self: empty)


def hands_back_while_it_sends(patch: pytest.MonkeyPatch) -> None:
    async def escaped(self: Escape, command: Command, peer: Peer) -> Reply:
        return Reply(body=self._table.packed())

    patch.setattr(Escape, "_escaped", escaped)


def counts_what_nobody_has_stored(patch: pytest.MonkeyPatch) -> None:
    right = EscapeSender.send

    async def send(self: EscapeSender, message: DueMessage) -> bool:
        await right(self, message)
        return True

    patch.setattr(EscapeSender, "send", send)


def keeps_what_falls_due(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Escape, "_may_deliver", lambda self: False)


@pytest.mark.parametrize(
    ("plant", "name", "told"),
    [
        (hands_back_nothing, "escaped", "was delivered more than once"),
        (hands_back_while_it_sends, "escaped-return", "was delivered more than once"),
        (counts_what_nobody_has_stored, "escaped-troubles", "never came"),
        (keeps_what_falls_due, "escaped", "ms late"),
    ],
)
def test_a_broken_promise_is_found(
    plant: Plant, name: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert_found(plant, name, told, monkeypatch)
