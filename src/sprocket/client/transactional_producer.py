"""Sends messages that consumers receive if, and only if, the sender's own work succeeds.

The message of a transaction is sent first, as a half message that no consumer receives. Then the
sender does its own work, and ends the transaction by commit or rollback. If the broker receives no
end, it sends a transaction check to the producer, or to another one of its group.

Source: DefaultMQProducerImpl.sendMessageInTransaction, checkTransactionState and endTransaction of
RocketMQ 5.x. Java sends the end without a reply; this client waits for the broker's reply.
"""

from __future__ import annotations

import contextlib
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from types import TracebackType
from typing import Self

from sprocket.base.errors import (
    SendFailed,
    SprocketError,
    TransportError,
    UsageError,
)
from sprocket.client.base.spans import TRANSACTION, wants_span
from sprocket.client.base.subscription import Outcome
from sprocket.client.base.world import ClientEnvironment
from sprocket.client.config import ProducerConfig
from sprocket.client.producer import Producer
from sprocket.client.sending.sender import Sent
from sprocket.client.sending.typed_messages import Codecs
from sprocket.client.session.transaction_checks import Check, TransactionChecks, call
from sprocket.clientcore.attempts import is_refusal
from sprocket.clientcore.envelope import Envelope, seal
from sprocket.clientcore.replies import SendStatus, is_stored
from sprocket.message.ids import parse_offset_id
from sprocket.message.message import Message
from sprocket.message.properties import (
    CHECK_IMMUNITY_SECONDS,
    HALF,
    PRODUCER_GROUP,
    PROPERTIES_BYTES_MAX,
    encode,
)
from sprocket.message.queue import QueueId
from sprocket.message.record import PREPARED
from sprocket.protocol.codes import ResponseCode
from sprocket.protocol.requests.transaction import EndTransaction

__all__ = ["Check", "Execute", "Outcome", "Transaction", "TransactionalProducer"]

logger = logging.getLogger(__name__)

#: The sender's own work, for `send_in_transaction`. A plain function runs in a thread.
Execute = Callable[["Transaction"], Awaitable[Outcome]] | Callable[["Transaction"], Outcome]

#: How many ends of transactions are remembered, to answer the checks of brokers.
_REMEMBERED_MAX = 10_000


class Transaction:
    """One message and the work that decides whether it is delivered. Use it with `async with`.

    Attributes:
        message: the message.
        id: its unique id, by which `check` may find the work; set inside `async with`.
        sent: where the half message is stored; None before that.
        is_confirmed: whether the broker has confirmed the end. If not, it will send a check.
    """

    def __init__(
        self,
        producer: TransactionalProducer,
        message: Message,
        *,
        place: tuple[str | int | None, QueueId | None],
        immunity_s: int | None,
        timeout_ms: float | None,
    ) -> None:
        self.message = message
        self.id = ""
        self.sent: Sent | None = None
        self.is_confirmed = False
        self.place = place
        self.immunity_s = immunity_s
        self.timeout_ms = timeout_ms
        self._producer = producer
        self._decided: Outcome | None = None

    def roll_back(self) -> None:
        """Has the block end with a rollback, although it raises no exception."""
        self._decided = Outcome.ROLLBACK

    def leave_open(self) -> None:
        """Leaves the end open: the broker will send a check, which `check` answers."""
        self._decided = Outcome.UNKNOWN

    def decide(self, outcome: Outcome) -> None:
        """Sets how the transaction ends."""
        self._decided = outcome

    async def __aenter__(self) -> Self:
        """Sends the half message; errors as for `Producer.send`."""
        await self._producer._begin(self)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Commits; rolls back after an exception; leaves it open after a cancellation."""
        outcome = self._decided or Outcome.COMMIT
        if kind is not None and outcome is not Outcome.UNKNOWN:
            is_error = issubclass(kind, Exception)
            outcome = Outcome.ROLLBACK if is_error else Outcome.UNKNOWN
        await self._producer._end(self, outcome)


class TransactionalProducer(Producer):
    """A producer that can also send messages in transactions.

    The message is delivered after the block, and never if the block raises an exception::

        async def was_stored(message):
            return Outcome.COMMIT if await orders.has(message.keys[0]) else Outcome.ROLLBACK

        async with TransactionalProducer("shop", nameservers=…, check=was_stored) as producer:
            async with producer.transaction(Message("orders", b"one book", keys=["o-1"])):
                await orders.store("o-1")

    Args:
        group, nameservers, config, codecs, world: as for `Producer`. All members of a group must be
            able to answer checks for each other.
        check: takes a half message and returns how its transaction ended; a plain function runs in
            a thread. It is called for transactions that this object does not remember: those of a
            process that died, or of another member of the group. None: these stay open.

    Raises:
        UsageError, ConfigError: as for `Producer`.
    """

    def __init__(
        self,
        group: str,
        *,
        nameservers: str | Sequence[str] | None = None,
        config: ProducerConfig | None = None,
        codecs: Codecs = None,
        world: ClientEnvironment | None = None,
        check: Check | None = None,
    ) -> None:
        super().__init__(group, nameservers=nameservers, config=config, codecs=codecs, world=world)
        #: By unique id, how the transaction ended; None while its work is running.
        self._ends: OrderedDict[str, Outcome | None] = OrderedDict()
        self._checks = TransactionChecks(group, self._remembered, check)

    async def start(self) -> None:
        """As `Producer.start`."""
        is_new = self._session is None
        await super().start()
        if is_new and self._session is not None:
            self._session.checkers.setdefault(self.group, []).append(self._checks)

    async def close(self) -> None:
        """As `Producer.close`. Open transactions stay open; brokers check with other members."""
        if self._session is not None:
            self._session.check_loop()
            checkers = self._session.checkers.get(self.group, [])
            if self._checks in checkers:
                checkers.remove(self._checks)
            if not checkers:
                self._session.checkers.pop(self.group, None)
        await self._checks.close()
        await super().close()

    def transaction(
        self,
        message: Message,
        *,
        key: str | int | None = None,
        queue: QueueId | None = None,
        immunity_s: int | None = None,
        timeout_ms: float | None = None,
    ) -> Transaction:
        """Returns a transaction for use with `async with`.

        Inside the block `roll_back` and `leave_open` set another end than commit. Leaving the block
        raises ReplyError if the broker refuses the commit for good.

        Args:
            message: the message.
            key, queue, timeout_ms: as for `Producer.send`.
            immunity_s: seconds before the first check; the broker's own setting applies if it is
                longer.

        Raises:
            UsageError: the message is delayed or has a priority, or `immunity_s` is below 0.
        """
        if message.waits:
            raise UsageError("a transaction's message cannot be delayed")
        if message.priority is not None:
            raise UsageError("a transaction's message cannot have a priority")
        if immunity_s is not None and immunity_s < 0:
            raise UsageError(f"an immunity is 0 s or more, not {immunity_s}")
        return Transaction(
            self, message, place=(key, queue), immunity_s=immunity_s, timeout_ms=timeout_ms
        )

    async def send_in_transaction(
        self,
        message: Message,
        execute: Execute,
        *,
        key: str | int | None = None,
        queue: QueueId | None = None,
        immunity_s: int | None = None,
        timeout_ms: float | None = None,
    ) -> Transaction:
        """Sends a half message, calls `execute`, and ends the transaction with its result.

        An exception of `execute` is raised again and leaves the transaction open. The other
        arguments and the errors are those of `transaction` and `send`.

        Args:
            execute: does the sender's work: takes the transaction and returns an `Outcome`. A plain
                function runs in a thread.
        """
        transaction = self.transaction(
            message, key=key, queue=queue, immunity_s=immunity_s, timeout_ms=timeout_ms
        )
        async with transaction:
            transaction.leave_open()
            transaction.decide(await call(execute, transaction))
        return transaction

    def _remembered(self, transaction_id: str) -> tuple[bool, Outcome]:
        """Returns whether a transaction is known here, and how it has ended."""
        if transaction_id not in self._ends:
            return False, Outcome.UNKNOWN
        return True, self._ends[transaction_id] or Outcome.UNKNOWN

    def _remember(self, transaction_id: str, outcome: Outcome | None) -> None:
        self._ends[transaction_id] = outcome
        self._ends.move_to_end(transaction_id)
        if len(self._ends) > _REMEMBERED_MAX:
            self._ends.popitem(last=False)

    # The transaction is remembered before the send, because a check may arrive before the send
    # returns. If the send fails, the broker may have stored the half message nevertheless; the
    # caller's work has not begun, so a rollback is remembered as the answer to a check.
    async def _begin(self, transaction: Transaction) -> None:
        """Sends the half message."""
        if transaction.id:
            raise UsageError("a transaction is used once")
        if self._spans is not None and wants_span(transaction.message):

            async def begin(message: Message) -> Sent | None:
                transaction.message = message
                await self._begin(transaction)
                return transaction.sent

            await self._spans.send(begin, transaction.message, TRANSACTION)
            return
        session, _ = self._joined()
        message = transaction.message
        sealed = seal(message, session.ids, session.world.clock.now_ms(), self.config)
        envelope = self._as_half(sealed, transaction.immunity_s)
        transaction.id = envelope.message_id
        self._remember(transaction.id, None)
        try:
            transaction.sent = await self._send_half(transaction, envelope)
        except BaseException:  # raised again
            self._remember(transaction.id, Outcome.ROLLBACK)
            raise
        if transaction.sent.status is not SendStatus.OK:
            await self._end(transaction, Outcome.ROLLBACK)
            raise SendFailed(
                f"message {transaction.id} to {message.topic!r}: {transaction.sent.status.value}"
            )

    def _as_half(self, envelope: Envelope, immunity_s: int | None) -> Envelope:
        more = {HALF: "true", PRODUCER_GROUP: self.group}
        if immunity_s is not None:
            more[CHECK_IMMUNITY_SECONDS] = str(immunity_s)
        properties = envelope.properties + encode(more)
        if len(properties.encode()) > PROPERTIES_BYTES_MAX:
            raise UsageError(f"properties of a transaction's message: over {PROPERTIES_BYTES_MAX}")
        return envelope._replace(properties=properties, sys_flag=envelope.sys_flag | PREPARED)

    async def _send_half(self, transaction: Transaction, envelope: Envelope) -> Sent:
        session, sender = self._joined()
        deadline = self._deadline(transaction.timeout_ms)
        key, queue = transaction.place
        if key is None and queue is None:
            sent = (await sender.send(envelope, deadline))[0]
        else:
            fixed = await sender.fixed(transaction.message, deadline, key=key, queue=queue)
            sent = (await sender.send(envelope, deadline, fixed))[0]
        # A broker sends checks to producers whose heartbeat it has.
        with contextlib.suppress(SprocketError):
            address = session.address(sent.queue.broker)
            if session.greeted(address) is None:
                await session.register(address)
        return sent

    # The outcome is remembered before it is sent, so a failure here loses nothing: the broker sends
    # a check and gets the same answer. So only a refusal of a commit is an error for the caller.
    async def _end(self, transaction: Transaction, outcome: Outcome) -> None:
        """Ends a transaction, under a span if there are some; see `_end_at_broker`."""
        if self._spans is None or outcome is Outcome.UNKNOWN:
            await self._end_at_broker(transaction, outcome)
            return
        name = outcome.name.lower()
        with self._spans.ending(name, transaction.message, transaction.id):
            await self._end_at_broker(transaction, outcome)

    async def _end_at_broker(self, transaction: Transaction, outcome: Outcome) -> None:
        """Sends the end of a transaction to the broker.

        Raises:
            ReplyError: the broker refuses the commit for good.
        """
        if outcome is Outcome.UNKNOWN:
            self._ends.pop(transaction.id, None)
            return
        self._remember(transaction.id, outcome)
        sent = transaction.sent
        assert sent is not None
        session, _ = self._joined()
        header = EndTransaction(
            topic=transaction.message.topic,
            producer_group=self.group,
            tran_state_table_offset=sent.queue_offset,
            commit_log_offset=parse_offset_id(sent.offset_id)[1],
            commit_or_rollback=outcome.value,
            msg_id=transaction.id,
            transaction_id=transaction.id,
            bname=sent.queue.broker,
        )
        deadline = self._deadline(None)

        async def end(address: str) -> bool:
            reply = await session.pool.call(address, header, deadline=deadline)
            if is_stored(reply.code) and reply.code != ResponseCode.SLAVE_NOT_AVAILABLE:
                return True
            raise reply.error()

        # A commit whose reply is lost may have been carried out, and a second one would send the
        # message twice at a Java broker. So that is left to the broker's check.
        try:
            transaction.is_confirmed = await session.search.call(
                sent.queue.broker, sent.queue.topic, end, deadline, is_repeatable=False
            )
        except SprocketError as error:
            if isinstance(error, TransportError) or is_refusal(error):
                logger.warning("the broker will ask for transaction %s: %s", transaction.id, error)
                return
            if outcome is Outcome.COMMIT:
                raise
            logger.warning("rollback of %s: %s", transaction.id, error)
