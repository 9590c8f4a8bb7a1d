"""EndTransaction: commits or rolls back the half message that a transaction id names.

The broker's answer is waited for, so that a client hears of an end that failed. RocketMQ's proxy
sends it one-way. An end of a transaction that has ended is refused, as that proxy does.
Source: EndTransactionActivity, TransactionProcessor of RocketMQ 5.3 (module proxy).
"""

from __future__ import annotations

from sprocket.base.deadline import Deadline
from sprocket.protocol.command import Command
from sprocket.protocol.requests.transaction import COMMIT, ROLLBACK, EndTransaction
from sprocket.proxy.brokers.brokers import Brokers
from sprocket.proxy.clients.ended_transactions import EndedTransactions
from sprocket.proxy.config import ProxyConfig
from sprocket.proxy.http2.calls import GrpcCall
from sprocket.proxy.messages import checks
from sprocket.proxy.messages import rocketmq_pb2 as pb
from sprocket.proxy.messages.statuses import CallRefused, status
from sprocket.proxy.messages.transaction_ids import TransactionId

_ENDS = {pb.COMMIT: COMMIT, pb.ROLLBACK: ROLLBACK}


class TransactionMethods:
    """Ends transactions."""

    def __init__(self, brokers: Brokers, ended: EndedTransactions, config: ProxyConfig) -> None:
        self._brokers = brokers
        self._ended = ended
        self._config = config

    async def end(
        self, call: GrpcCall, request: pb.EndTransactionRequest
    ) -> pb.EndTransactionResponse:
        """Ends a transaction. One whose end is not known yet stays: the broker asks again.

        Raises:
            CallRefused: it is no transaction id, or its transaction has ended.
            SprocketError: the broker refuses, or cannot be reached.
        """
        topic = checks.topic_name(request.topic)
        half = TransactionId.parse(request.transaction_id)
        end = _ENDS.get(request.resolution)
        if end is not None:
            header = EndTransaction(
                topic=topic,
                producer_group=topic,
                tran_state_table_offset=half.queue_offset,
                commit_log_offset=half.log_offset,
                commit_or_rollback=end,
                from_transaction_check=request.source == pb.SOURCE_SERVER_CHECK,
                msg_id=request.message_id,
                transaction_id=request.message_id,
                bname=half.broker,
            )
            await self._end(half, topic, header)
        return pb.EndTransactionResponse(status=status(pb.OK))

    async def _end(self, half: TransactionId, topic: str, header: EndTransaction) -> None:
        if not self._ended.begin(half):
            raise CallRefused(pb.INTERNAL_SERVER_ERROR, "the transaction has ended already")
        try:
            address = await self._brokers.address_of(half.broker, topic)
            deadline = Deadline.after_ms(self._config.call_timeout_ms)
            outcome = self._brokers.call(address, header, deadline=deadline)
            (outcome if isinstance(outcome, Command) else await outcome).checked()
        except BaseException:  # whatever happened, the client may try again
            self._ended.reopen(half)
            raise
