"""Publishes what the tasks of a write have staged, in the driver. See docs/flows/staged.md.

Spark starts a process for each commit, so nothing is imported here that packing rows needs: numpy,
pyarrow, and pandas with it, take most of a second.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from sprocket.base.backoff import pauses
from sprocket.base.errors import ReplyError, RouteNotFound, TransportError
from sprocket.clientcore.attempts import Attempts
from sprocket.protocol.bodies.staged import AttemptEntry, AttemptList, AttemptsElsewhere
from sprocket.protocol.requests.staged import Published, PublishStaged
from sprocket.spark.brokers.connection import BlockingConnection
from sprocket.spark.brokers.pool import ConnectionPool
from sprocket.spark.options.write_options import WriteOptions
from sprocket.spark.writing.failures import WriteFailed, explained
from sprocket.spark.writing.staged_part import StagedPart

#: How long a broker remembers a stream after a micro-batch, and a batch write, s.
STREAM_KEPT_S, BATCH_KEPT_S = 30 * 86_400, 3_600
_PAUSE_FIRST_S, _PAUSE_LONGEST_S = 0.1, 2.0


def publish(
    options: WriteOptions,
    parts: Sequence[StagedPart],
    *,
    is_first: bool,
    keep_seconds: int,
    waits: bool,
) -> bool:
    """Makes all rows of a transaction visible, unless that was done before.

    The first broker decides for all of them, and knows what the others publish. So whoever makes a
    decided transaction again, with other rows, has the others publish the first ones.

    Args:
        waits: whether it returns when all are visible, and not as soon as that is decided.
        parts: what the tasks have staged, at least one.
        is_first: whether the first broker may know nothing of the writer.

    Returns:
        Whether it was decided before.

    Raises:
        WriteFailed: a broker does not do it; the text has the reason.
    """
    header = PublishStaged(
        writer=parts[0].writer, batch_id=parts[0].batch_id, keep_seconds=keep_seconds, waits=False
    )
    shares: dict[str, list[AttemptEntry]] = {}
    topics: dict[str, str] = {}
    for part in parts:
        topics.update(part.topics)
        for broker, requests in part.requests.items():
            shares.setdefault(broker, []).append(AttemptEntry(name=part.attempt, requests=requests))
    with ConnectionPool(
        options.nameservers,
        signer=options.signer,
        tls=options.tls,
        timeout_s=options.timeout_ms / 1000,
    ) as pool:
        publisher = _Publisher(pool, options, header, topics)
        return publisher.publish(shares, is_first=is_first, waits=waits)


class _Publisher:
    """Has the brokers of one transaction publish it.

    Args:
        header: what all requests have in common.
        topics: by broker, one of those of its messages.
    """

    def __init__(
        self,
        pool: ConnectionPool,
        options: WriteOptions,
        header: PublishStaged,
        topics: Mapping[str, str],
    ) -> None:
        self._pool = pool
        self._options = options
        self._header = header
        self._topics = topics

    def publish(
        self, shares: Mapping[str, list[AttemptEntry]], *, is_first: bool, waits: bool
    ) -> bool:
        """See `publish`.

        Args:
            shares: the attempts that count, by broker.
        """
        first = self._options.transaction_brokers[0]
        others = [
            AttemptsElsewhere(broker=broker, attempts=attempts)
            for broker, attempts in shares.items()
            if broker != first
        ]
        for each in others:  # before the decision, since it cannot be taken back
            self._follow(first, each, checks_only=True)
        own = AttemptList(attempts=shares.get(first, []), elsewhere=others)
        done, decided = self._ask(first, own, is_first=is_first, waits=waits and not others)
        if done.is_repeat:
            others = decided.elsewhere
        for each in others:
            self._follow(first, each)
        if waits and not done.is_finished:
            self._ask(first, own, is_first=is_first, waits=True)
        if waits:
            for each in others:
                self._follow(first, each, waits=True)
        return done.is_repeat

    def _follow(self, first: str, one: AttemptsElsewhere, **named: bool) -> None:
        """Has another broker publish what the first one has decided."""
        attempts = AttemptList(attempts=one.attempts)
        self._ask(one.broker, attempts, is_first=True, decided_by=first, **named)

    def _ask(self, broker: str, asked: AttemptList, **named: Any) -> tuple[Published, AttemptList]:
        """A broker's reply, and what it decided before; with `waits` once all is published there.

        Raises:
            WriteFailed: it does not do it.
        """
        header = replace(self._header, topic=self._topics.get(broker), **named)
        attempts, before = self._attempts(), -1
        while True:
            try:
                answer = self._connection(broker).ask(header, body=asked.encode())
                reply = answer.read(Published)
            except (TransportError, ReplyError, RouteNotFound) as error:
                if isinstance(error, TransportError):
                    self._pool.hang_up_on(broker)
                if not attempts.another(error, broker):
                    raise WriteFailed(
                        f"transaction {header.batch_id} of writer {header.writer} was not "
                        f"published by {broker}: {explained(error, broker)}"
                    ) from error
                time.sleep(attempts.pause(broker))
                continue
            if reply.is_finished or not header.waits:
                return reply, AttemptList.decode(answer.body or b"{}")
            if reply.published > before:
                attempts, before = self._attempts(), reply.published
            elif not attempts.another(TransportError("no progress"), broker):
                raise WriteFailed(
                    f"{broker} publishes no more than {before} of {reply.messages} rows"
                )

    def _connection(self, broker: str) -> BlockingConnection:
        """The connection to a broker, which need not have a topic of the rows.

        Raises:
            RouteNotFound: no route has its address.
            TransportError: a server does not reply.
        """
        # Each broker has a topic of its name, but not every user may ask for the route of that.
        names = filter(None, (self._topics.get(broker), self._options.topic))
        for topic in dict.fromkeys(names):
            with contextlib.suppress(RouteNotFound):
                self._pool.route(topic)
                return self._pool.to(broker, is_for_sending=True)
        self._pool.route(broker)
        return self._pool.to(broker, is_for_sending=True)

    def _attempts(self) -> Attempts:
        return Attempts(self._options.retries, pauses(_PAUSE_FIRST_S, _PAUSE_LONGEST_S))
