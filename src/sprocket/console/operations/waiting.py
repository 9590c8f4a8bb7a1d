"""Operations about what waits: delayed messages, and transactions that nobody has ended."""

from __future__ import annotations

from contextlib import aclosing
from datetime import datetime
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from sprocket.admin import reading, resend, timers, transactions
from sprocket.base.errors import TopicNotFound
from sprocket.console.operations.brokers import BrokersAsked
from sprocket.console.operations.declare import Declarations, OperationEnvironment
from sprocket.console.operations.message_facts import (
    ANSWER_BYTES_MAX,
    BodyBytes,
    MessageFacts,
    facts_of,
    size_of,
)
from sprocket.console.operations.messages import FoundMessages, taken_of
from sprocket.console.operations.values import (
    Asked,
    ChangeAsked,
    ChangeLine,
    ChangeReport,
    Limit,
    OnlyBroker,
    OnlyCluster,
    time_of,
)
from sprocket.message.recall import RecallHandle
from sprocket.message.topic import CHECKS_EXHAUSTED
from sprocket.protocol.codes import RequestCode

declared = Declarations()


class DelayedAt(msgspec.Struct, frozen=True, kw_only=True):
    """The messages that wait for their time at a broker."""

    broker: str
    total: int
    topics: dict[str, int]
    due: Annotated[
        dict[str, int], Meta(description="Messages by the seconds within which they are due.")
    ]
    later: Annotated[int | None, Meta(description="Those that are due after that.")]
    next_at: Annotated[datetime | None, Meta(description="When the next may be due.")]


class DelayedMessages(msgspec.Struct, frozen=True, kw_only=True):
    """The messages that wait for their time."""

    brokers: list[DelayedAt]


class RecallAsked(ChangeAsked, frozen=True, kw_only=True):
    """Which message does not come."""

    handle: Annotated[
        str, Meta(min_length=1, max_length=4_096, description="The handle that the send returned.")
    ]


class PendingAsked(Asked, frozen=True, kw_only=True):
    """Which transactions."""

    cluster: OnlyCluster = None
    broker: OnlyBroker = None
    limit: Limit = 100
    body_bytes: BodyBytes = 1_024


class PendingFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A transaction that nobody has ended."""

    topic: str
    producer_group: str
    checks: Annotated[int, Meta(description="How often its producers were asked.")]
    message: MessageFacts


class PendingTransactions(msgspec.Struct, frozen=True, kw_only=True):
    """Transactions that nobody has ended, the oldest first at each broker."""

    transactions: list[PendingFacts]
    is_cut: Annotated[bool, Meta(description="Whether there may be more.")] = False


class ParkedAsked(Asked, frozen=True, kw_only=True):
    """How many of those that are given up."""

    limit: Limit = 100
    body_bytes: BodyBytes = 1_024


class CheckAsked(ChangeAsked, frozen=True, kw_only=True):
    """Which transaction is checked again."""

    id: Annotated[
        str, Meta(min_length=1, max_length=128, description="Offset id, as parked shows it.")
    ]


@declared.reads("delayed.waiting", "/delayed", codes=[RequestCode.GET_TIMER_METRICS])
async def waiting(given: OperationEnvironment, asked: BrokersAsked) -> DelayedMessages:
    """Shows how many messages with a delay or a time wait, by topic and by time."""
    found = await timers.waiting(given.caller, cluster=asked.cluster, broker=asked.broker)
    return DelayedMessages(
        brokers=[
            DelayedAt(
                broker=each.broker,
                total=each.total,
                topics=dict(list(each.topics.items())[:1_000]),
                due={str(seconds): count for seconds, count in each.spans.items()},
                later=None if each.later < 0 else each.later,
                next_at=time_of(each.next_ms),
            )
            for each in found
        ]
    )


@declared.changes(
    "delayed.recall",
    "POST /delayed/recall",
    codes=[RequestCode.RECALL_MESSAGE],
    is_destructive=True,
)
async def recall(given: OperationEnvironment, asked: RecallAsked) -> ChangeReport:
    """Recalls a message that waits for its time; nobody gets it."""
    said = RecallHandle.parse(asked.handle)
    if not asked.dry_run:
        await timers.recall(given.caller, asked.handle)
    change = ChangeLine(
        what=f"message {said.unique_key} of {said.topic}", broker=said.broker, before="waiting"
    )
    return ChangeReport(dry_run=asked.dry_run, changes=[change])


@declared.reads(
    "transactions.pending",
    "/transactions",
    codes=[RequestCode.PULL_MESSAGE, RequestCode.QUERY_CONSUMER_OFFSET],
)
async def pending(given: OperationEnvironment, asked: PendingAsked) -> PendingTransactions:
    """Lists the transactions that nobody has committed or rolled back yet."""
    found: list[PendingFacts] = []
    size = 0
    async with aclosing(
        transactions.pending(given.caller, cluster=asked.cluster, broker=asked.broker)
    ) as stream:
        async for each in stream:
            size += size_of(each.message, asked.body_bytes)
            if len(found) >= asked.limit or (found and size > ANSWER_BYTES_MAX):
                return PendingTransactions(transactions=found, is_cut=True)
            facts = facts_of(each.message, asked.body_bytes)
            found.append(
                PendingFacts(
                    topic=each.topic, producer_group=each.producer_group, checks=each.checks,
                    message=facts,
                )
            )  # fmt: skip
    return PendingTransactions(transactions=found)


@declared.reads("transactions.parked", "/transactions/parked", codes=[RequestCode.PULL_MESSAGE])
async def parked(given: OperationEnvironment, asked: ParkedAsked) -> FoundMessages:
    """Lists transactions that are given up: no producer ended them, however often it was asked."""
    try:
        found, is_cut = await taken_of(
            reading.messages(given.caller, CHECKS_EXHAUSTED), asked.limit, asked.body_bytes
        )
    except TopicNotFound:
        return FoundMessages(messages=[])
    return FoundMessages(messages=found, is_cut=is_cut)


@declared.changes(
    "transactions.check",
    "POST /transactions/check",
    codes=[RequestCode.VIEW_MESSAGE_BY_ID, RequestCode.RESUME_CHECK_HALF_MESSAGE],
)
async def check(given: OperationEnvironment, asked: CheckAsked) -> ChangeReport:
    """Has a transaction checked again that was given up."""
    after: Any = "checked again"
    if not asked.dry_run:
        message = await transactions.check_again(given.caller, asked.id)
        after = {"checked": resend.place_of(message)}
    change = ChangeLine(what=f"transaction {asked.id}", before="given up", after=after)
    return ChangeReport(dry_run=asked.dry_run, changes=[change])
