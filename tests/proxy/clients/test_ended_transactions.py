"""Which transactions may still be ended."""

from __future__ import annotations

from sprocket.proxy.clients.ended_transactions import EndedTransactions
from sprocket.proxy.messages.transaction_ids import TransactionId

ONE, OTHER = TransactionId("b", 1, 0), TransactionId("b", 2, 1)


def test_a_transaction_ends_once_unless_it_is_opened_again() -> None:
    ended = EndedTransactions()
    assert ended.begin(ONE)
    assert not ended.begin(ONE)
    assert ended.begin(OTHER)
    ended.reopen(ONE)
    ended.reopen(ONE)
    assert ended.begin(ONE)


def test_the_oldest_are_forgotten() -> None:
    ended = EndedTransactions()
    assert all(ended.begin(TransactionId("b", at, at)) for at in range(20_001))
    assert ended.begin(TransactionId("b", 0, 0))
    assert not ended.begin(TransactionId("b", 20_000, 20_000))
