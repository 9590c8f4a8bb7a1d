"""Transactions at a broker: their end by producers (37), and the checks sent to producers (39).

A second commit gets the reply of the first and stores nothing; an end that contradicts the first is
refused. Java stores a second copy, and allows a rollback after a commit. Java's producers send ends
one-way, so they get no reply: a refused end is logged.
Source: EndTransactionProcessor, ProducerManager.getAvailableChannel, Broker2Client and
AdminBrokerProcessor.resumeCheckHalfMessage of RocketMQ 5.x.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping

from sprocket.auth.needs import PUB, UPDATE
from sprocket.base.errors import (
    CorruptRecord,
    InvalidParameter,
    NoPermission,
    OffsetOutOfRange,
    StoreError,
    SystemFailure,
    UsageError,
)
from sprocket.base.rare_log import RareLog
from sprocket.broker.dispatch import Endpoints
from sprocket.broker.members.callbacks import peer_of
from sprocket.broker.sending.acknowledgement import Acknowledgement
from sprocket.broker.sending.destination import Intake
from sprocket.broker.sending.ingress import Ingress
from sprocket.broker.settings import BrokerSettings
from sprocket.broker.tables.clients import ClientInfo, ClientTable
from sprocket.broker.tables.measures import BrokerMeasures
from sprocket.broker.tables.rights import Rights
from sprocket.broker.tables.topics import Topics
from sprocket.message import properties as names
from sprocket.message.ids import offset_id, parse_offset_id
from sprocket.message.properties import decode_bytes
from sprocket.message.record import Draft, Record, parse
from sprocket.message.topic import CHECKS_EXHAUSTED
from sprocket.protocol.codes import RequestCode
from sprocket.protocol.command import Command, Reply
from sprocket.protocol.requests.transaction import (
    COMMIT,
    ROLLBACK,
    UNKNOWN,
    CheckTransaction,
    EndTransaction,
    ResumeCheck,
)
from sprocket.remoting.transport import Peer
from sprocket.store.store import Store
from sprocket.store.writing.appender import Appended
from sprocket.transaction.check import CheckRules, choose
from sprocket.transaction.check_loop import CheckLoop
from sprocket.transaction.half import Half, StoredHalf
from sprocket.transaction.ledger import EndState, Ledger
from sprocket.transaction.settle import Settlement

logger = logging.getLogger(__name__)

Answer = Reply | Awaitable[Reply] | None


def check_rules(settings: BrokerSettings) -> Callable[[], CheckRules]:
    """When producers are asked how a transaction ended, by the settings in force."""

    def rules() -> CheckRules:
        config = settings.config
        return CheckRules(
            config.transaction_timeout_ms,
            config.transaction_check_ms,
            config.transaction_checks_max,
        )

    return rules


class LiveProducers:
    """The connected producers, to which checks are sent.

    Args:
        broker_name: the broker's name, which producers send back when they end a transaction.
        host: the broker's address in the binary form of records.
    """

    def __init__(self, clients: ClientTable, *, broker_name: str, host: bytes) -> None:
        self._clients = clients
        self._broker_name = broker_name
        self._host = host
        self._turn = 0

    def has(self, group: str) -> bool:
        """Whether a producer of the group is connected."""
        return self._choose(group) is not None

    def ask(self, copy: Half, found: StoredHalf, asked: bytes) -> None:
        """Sends a check to a producer of the half message's group, one-way; each time to another
        one.

        Clients answer with the topic that the check names. RocketMQ's broker names that of half
        messages, to which nobody has rights, so at a closed one it refuses each answer.
        """
        client = self._choose(found.properties.get(names.PRODUCER_GROUP, ""))
        self._turn += 1
        if client is None:
            return
        unique_key = found.properties.get(names.UNIQUE_KEY)
        header = CheckTransaction(
            topic=_topic(found.record, found.properties),
            tran_state_table_offset=copy.offset,
            commit_log_offset=copy.log_offset,
            msg_id=unique_key,
            transaction_id=unique_key,
            offset_msg_id=offset_id(self._host, copy.log_offset),
            bname=self._broker_name,
        )
        peer_of(client).send_oneway(header, body=asked)

    def _choose(self, group: str) -> ClientInfo | None:
        return choose(self._clients.producers(group), self._turn, _is_there)


def _is_there(client: ClientInfo) -> bool:
    peer = peer_of(client)
    return not peer.is_closed and not peer.is_full  # it may well hold a pull or a pop


class ParkingIngress:
    """Stores messages of transactions; creates the topic of parked messages if it is missing."""

    def __init__(self, ingress: Ingress, topics: Topics) -> None:
        self._ingress = ingress
        self._topics = topics

    def accept_committed(self, draft: Draft, properties: dict[str, str]) -> Appended:
        """Stores a message whose transaction was committed.

        Raises:
            IllegalMessage, SystemFailure, DiskFull, StoreError, ClosedError: as `Ingress.accept`.
        """
        return self._ingress.accept(Intake(draft, properties, is_committed=True)).last

    def accept_due(self, draft: Draft) -> Appended:
        """As `Ingress.accept_due`."""
        if draft.topic == CHECKS_EXHAUSTED:
            self.open_parking()
        return self._ingress.accept_due(draft)

    def open_parking(self) -> None:
        """Creates the topic of parked messages. After a full disk or a power failure its messages
        may exist without it."""
        self._topics.make_for_group(CHECKS_EXHAUSTED, queues=1)


class TransactionCounts:
    """Counters of transactions for operators: undecided, committed, rolled back and parked."""

    def __init__(self, ledger: Ledger, settlement: Settlement, check_loop: CheckLoop) -> None:
        self._ledger = ledger
        self._settlement = settlement
        self._check_loop = check_loop

    def table(self) -> dict[str, str]:
        """All counters by name; ends and checks since the start."""
        counts = self._settlement.counts
        return {
            "transactionsPending": str(len(self._ledger)),
            "transactionsCommitted": str(counts[EndState.COMMITTED]),
            "transactionsRolledBack": str(counts[EndState.ROLLED_BACK]),
            "transactionsParked": str(counts[EndState.PARKED]),
            "transactionChecks": str(self._check_loop.count),
        }


class TransactionRequests:
    """Answers requests about transactions."""

    def __init__(
        self,
        store: Store,
        acknowledgement: Acknowledgement,
        *,
        settlement: Settlement,
        rights: Rights,
        measures: BrokerMeasures | None = None,
    ) -> None:
        self._measures = measures
        self._store = store
        self._rights = rights
        self._acknowledgement = acknowledgement
        self._settlement = settlement
        self._warnings = RareLog(logger)

    def endpoints(self) -> Endpoints:
        """The endpoints, by request code."""
        return {
            RequestCode.END_TRANSACTION: self.end,
            RequestCode.RESUME_CHECK_HALF_MESSAGE: self.resume,
        }

    def end(self, command: Command, peer: Peer) -> Answer:
        """Commits or rolls back; an undecided producer ("unknown") gets no reply.

        Raises:
            SystemFailure: there is no such half message, or it ended the other way.
            NoPermission: whoever asks may not send to its topic.
            IllegalMessage, DiskFull, StoreError: the end cannot be stored; it may be repeated.
        """
        header = command.read(EndTransaction)
        if header.commit_or_rollback == UNKNOWN:
            return None
        if header.commit_or_rollback not in (COMMIT, ROLLBACK):
            raise SystemFailure("commitOrRollback field wrong")
        try:
            found = self._found(header)
            topic = _topic(found.record, found.properties)
            self._rights.require(command, peer, topic, PUB, named=header.topic)
            return self._ended(header, found, is_oneway=command.is_oneway)
        except (SystemFailure, NoPermission) as error:
            self._warnings.warning(
                "group %s at %s wants to %s the transaction at %d, which is refused: %s",
                header.producer_group,
                peer.address,
                "commit" if header.commit_or_rollback == COMMIT else "roll back",
                header.commit_log_offset,
                error,
            )
            raise

    def _ended(self, header: EndTransaction, found: StoredHalf, *, is_oneway: bool) -> Answer:
        if header.commit_or_rollback == ROLLBACK:
            self._settlement.roll_back(found)
            if is_oneway:
                return Reply()
            if not self._settlement.write_op_records():
                raise StoreError("the record of the rollback cannot be stored yet")
            return self._acknowledgement.up_to(self._store.log_end)
        appended = self._settlement.commit(found, is_answer=header.from_transaction_check)
        if self._measures is not None and appended is not None:
            after_ms = appended.stored_ms - found.record.born_ms
            self._measures.committed(appended.topic, after_ms)
        if is_oneway:
            return Reply()
        if appended is None:
            return self._acknowledgement.up_to(self._store.log_end)
        return self._acknowledgement.without_header(appended)

    def _found(self, header: EndTransaction) -> StoredHalf:
        try:
            found = self._settlement.read(header.commit_log_offset)
        except (OffsetOutOfRange, CorruptRecord):
            raise SystemFailure("Find prepared transaction message failed") from None
        if found.properties.get(names.PRODUCER_GROUP) != header.producer_group:
            raise SystemFailure("The producer group wrong")
        if found.record.queue_offset != header.tran_state_table_offset:
            raise SystemFailure("The transaction state table offset wrong")
        return found

    def resume(self, command: Command, peer: Peer) -> Reply | Awaitable[Reply]:
        """Checks a parked message again.

        Raises:
            InvalidParameter: the message id is invalid.
            SystemFailure: there is no such message, or it is not parked.
            NoPermission: whoever asks may not change its topic.
        """
        header = command.read(ResumeCheck)
        try:
            _, log_offset = parse_offset_id(header.msg_id or "")
        except UsageError as error:
            raise InvalidParameter(str(error)) from error
        try:
            record = parse(self._store.lookup(log_offset))
            topic = _topic(record, decode_bytes(record.properties))
            self._rights.require(command, peer, topic, UPDATE, named=None)
            resumed = self._settlement.resume(record)
        except (OffsetOutOfRange, CorruptRecord) as error:
            raise SystemFailure(f"{header.msg_id} cannot be checked again: {error}") from error
        return self._acknowledgement.without_header(resumed)


def _topic(record: Record, properties: Mapping[str, str]) -> str:
    """The topic for which a half message, or a parked one, was sent."""
    return properties.get(names.REAL_TOPIC) or record.topic
