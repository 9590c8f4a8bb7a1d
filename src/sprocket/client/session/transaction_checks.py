"""Answers to the transaction checks of brokers (request code 39).

Source: ClientRemotingProcessor.checkTransactionState, DefaultMQProducerImpl.checkTransactionState
of RocketMQ 5.x.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from sprocket.base.errors import CorruptRecord, ProtocolError, TransportError
from sprocket.client.base.subscription import Listener, Outcome
from sprocket.client.base.threads import call_in_thread
from sprocket.client.base.user_code import is_from_outside
from sprocket.message.message import StoredMessage
from sprocket.message.properties import PRODUCER_GROUP, UNIQUE_KEY
from sprocket.message.record import decode
from sprocket.protocol.command import Command
from sprocket.protocol.requests.transaction import CheckTransaction, EndTransaction
from sprocket.remoting.transport import Peer

logger = logging.getLogger(__name__)

#: How many checks the user's function answers at once. Further ones are ignored, because the broker
#: sends each check again.
_CHECKS_MAX = 64


#: Takes the half message and returns how its transaction ended. A plain function runs in a thread.
Check = Callable[[StoredMessage], Awaitable[Outcome]] | Callable[[StoredMessage], Outcome]


class TransactionChecks:
    """Answers the checks for one producer.

    Args:
        group: the producer group.
        remembered: takes a transaction's id; returns whether it is known, and how it ended.
        check: the user's function, or None.
    """

    def __init__(
        self,
        group: str,
        remembered: Callable[[str], tuple[bool, Outcome]],
        check: Check | None,
    ) -> None:
        self._group = group
        self._remembered = remembered
        self._check = check
        self._running: set[asyncio.Task[None]] = set()

    def knows(self, transaction_id: str) -> bool:
        """Whether this producer sent the transaction and still remembers it."""
        return self._remembered(transaction_id)[0]

    def answer(self, header: CheckTransaction, message: StoredMessage, peer: Peer) -> None:
        """Answers a broker at once if the end is known, else when the user's function returns."""
        is_known, outcome = self._remembered(message.properties.get(UNIQUE_KEY, ""))
        if is_known or self._check is None:
            self._report(header, message, peer, outcome)
        elif len(self._running) < _CHECKS_MAX:
            task = asyncio.ensure_future(self._ask(header, message, peer, self._check))
            self._running.add(task)
            task.add_done_callback(self._running.discard)

    async def close(self) -> None:
        """Cancels the checks that are running."""
        others = self._running - {asyncio.current_task()}  # a check may close its own producer
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _ask(
        self, header: CheckTransaction, message: StoredMessage, peer: Peer, check: Check
    ) -> None:
        try:
            outcome = await call(check, message)
        except BaseException as error:  # the user's function
            if is_from_outside(error):
                raise
            logger.exception("the check of transaction %s failed", header.transaction_id)
            outcome = Outcome.UNKNOWN
        self._report(header, message, peer, outcome)

    def _report(
        self, header: CheckTransaction, message: StoredMessage, peer: Peer, outcome: Outcome
    ) -> None:
        transaction_id = message.properties.get(UNIQUE_KEY)
        end = EndTransaction(
            topic=header.topic,
            producer_group=self._group,
            tran_state_table_offset=header.tran_state_table_offset,
            commit_log_offset=header.commit_log_offset,
            commit_or_rollback=outcome.value,
            from_transaction_check=True,
            msg_id=transaction_id,
            transaction_id=transaction_id,
            bname=header.bname,
        )
        try:
            peer.send_oneway(end)
        except TransportError as error:
            logger.debug("the broker will check %s again: %s", transaction_id, error)


def answer_check(
    checkers: Mapping[str, Sequence[TransactionChecks]], command: Command, peer: Peer
) -> None:
    """Passes a check to the producer that sent the message, or else to the first one of its group.

    Without a producer of that group the check is ignored.

    Args:
        checkers: those of one session, by producer group.
    """
    try:
        header = command.read(CheckTransaction)
        message = decode(command.body, 0, header.bname or "", opens_body=True)
    except (ProtocolError, CorruptRecord) as error:
        logger.warning("%s sent a transaction check that cannot be read: %s", peer.address, error)
        return
    group = message.properties.get(PRODUCER_GROUP, "")
    members = checkers.get(group, ())
    if not members:
        logger.info("%s checks group %s, which has no producer here", peer.address, group)
        return
    transaction_id = message.properties.get(UNIQUE_KEY, "")
    checks = next((each for each in members if each.knows(transaction_id)), members[0])
    checks.answer(header, message, peer)


async def call(function: Callable[[Any], Any], argument: object) -> Outcome:
    """Calls a user's function, a plain one in a thread, and returns its outcome.

    Raises:
        TypeError: it did not return an `Outcome`.
        Exception: whatever the function raises.
    """
    if Listener.of(function, None).is_blocking:
        outcome = await call_in_thread(function, argument)
    else:
        outcome = await function(argument)
    if not isinstance(outcome, Outcome):
        raise TypeError(f"a transaction ends with an Outcome, not {outcome!r}")
    return outcome
