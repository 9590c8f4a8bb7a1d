"""The transactions that ended through this proxy: an end that is repeated is refused.

RocketMQ's proxy forgets a transaction with its first end, and answers every further one as that of
an unknown transaction. Its brokers would store a message again that is committed again.
Source: TransactionDataManager.pollNoExpireTransactionData of RocketMQ 5.3 (module proxy).
"""

from __future__ import annotations

from collections import OrderedDict

from sprocket.proxy.messages.transaction_ids import TransactionId

#: How many are remembered; of older ones, the broker knows how they ended.
_REMEMBERED_MAX = 20_000


class EndedTransactions:
    """The ids of the newest ones."""

    def __init__(self) -> None:
        self._ids: OrderedDict[TransactionId, None] = OrderedDict()

    def begin(self, transaction: TransactionId) -> bool:
        """Records that a transaction is being ended; returns False if it was before."""
        if transaction in self._ids:
            return False
        self._ids[transaction] = None
        if len(self._ids) > _REMEMBERED_MAX:
            self._ids.popitem(last=False)
        return True

    def reopen(self, transaction: TransactionId) -> None:
        """Permits another end: the first one failed, or the broker asks for it."""
        self._ids.pop(transaction, None)
