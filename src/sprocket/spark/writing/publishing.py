"""Publishes what the tasks of a write have staged, in the driver. See docs/flows/staged.md.

Spark starts a process for each commit, so nothing is imported here that packing rows needs: numpy,
pyarrow, and pandas with it, take most of a second.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from sprocket.base.backoff import pauses
from sprocket.base.errors import ReplyError, RouteNotFound, TransportError
from sprocket.clientcore.attempts import Attempts
from sprocket.protocol.bodies.staged import AttemptEntry, AttemptList
from sprocket.protocol.requests.staged import Published, PublishStaged
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
) -> Published:
    """Makes all rows of a transaction visible, unless that was done before.

    Args:
        waits: whether it returns when all are visible, and not as soon as that is decided.
        parts: what the tasks have staged, at least one.
        is_first: whether the broker may know nothing of the writer.

    Raises:
        WriteFailed: the broker does not do it; the text has the reason.
    """
    topic = next((one.topic for one in parts if one.topic), None)
    header = PublishStaged(
        topic=topic,
        writer=parts[0].writer,
        batch_id=parts[0].batch_id,
        is_first=is_first,
        keep_seconds=keep_seconds,
        waits=waits,
    )
    entries = [AttemptEntry(name=one.attempt, requests=one.requests) for one in parts]
    body = AttemptList(attempts=entries).encode()
    with ConnectionPool(
        options.nameservers,
        signer=options.signer,
        tls=options.tls,
        timeout_s=options.timeout_ms / 1000,
    ) as pool:
        return _published(pool, options, topic or options.topic or "", header, body)


def _published(
    pool: ConnectionPool, options: WriteOptions, topic: str, header: PublishStaged, body: bytes
) -> Published:
    broker = options.transaction_broker or ""
    attempts, before = _attempts(options), -1
    while True:
        try:
            pool.route(topic or broker)  # each broker has a topic of its name
            connection = pool.to(broker, is_for_sending=True)
            reply = connection.ask(header, body=body).read(Published)
        except (TransportError, ReplyError, RouteNotFound) as error:
            if isinstance(error, TransportError):
                pool.hang_up_on(broker)
            if not attempts.another(error, broker):
                raise WriteFailed(
                    f"transaction {header.batch_id} of writer {header.writer} was not published by "
                    f"{broker}: {explained(error, broker)}"
                ) from error
            time.sleep(attempts.pause(broker))
            continue
        if reply.is_finished or not header.waits:
            return reply
        if reply.published > before:
            attempts, before = _attempts(options), reply.published
        elif not attempts.another(TransportError("no progress"), broker):
            raise WriteFailed(f"{broker} publishes no more than {before} of {reply.messages} rows")


def _attempts(options: WriteOptions) -> Attempts:
    return Attempts(options.retries, pauses(_PAUSE_FIRST_S, _PAUSE_LONGEST_S))
