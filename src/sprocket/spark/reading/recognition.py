"""Recognises queues: is a queue still the one that was read?

A topic can be deleted and made again, and a broker's store can be replaced by another one. Then the
queues count from 0 again, and an offset that was kept means other messages. So a witness is kept
with it, a message that was read. If another message is at its place, or none, the queue is not the
one that was read. If the broker deleted the witness because it is old, the queue is taken for the
same, unless the log has begun anew: log offsets rise in a queue as long as its store lives.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import NamedTuple

from sprocket.clientcore.witness import UNKNOWN, Witness
from sprocket.message.queue import QueueId
from sprocket.spark.brokers.cluster import ClusterMetadata, Sighting
from sprocket.spark.options.checkpoint import Witnesses
from sprocket.spark.options.loss import report_loss
from sprocket.spark.options.options import SelectionOptions


class QueueChange(NamedTuple):
    """A queue that is not the one that was read.

    Attributes:
        what: what was found, in words.
        begin: the offset of the first message that was not read.
    """

    what: str
    begin: int


def find_changes(
    cluster: ClusterMetadata, group: str, witnesses: Mapping[QueueId, Witness]
) -> dict[QueueId, QueueChange]:
    """The queues that are not the ones from which these witnesses were read.

    Args:
        group: the consumer group in whose name is read.

    Raises:
        ReplyError: a broker refused.
        TransportError: a broker did not reply.
    """
    seen = cluster.sightings(group, {queue: one.offset for queue, one in witnesses.items()})
    doubtful = {
        queue: seen[queue].first
        for queue, one in witnesses.items()
        if _is_doubtful(one, seen[queue])
    }
    firsts = cluster.sightings(group, doubtful)
    changes: dict[QueueId, QueueChange] = {}
    for queue, first in firsts.items():
        witness = witnesses[queue]
        if witness.offset < seen[queue].first and not _is_behind(first.message, witness):
            continue
        begin, why = first.first, "the topic was made anew, or its broker's store was replaced"
        if first.message is not None and _is_older(first.message, witness):
            # Its first messages are those of before: only its end is another one.
            found = cluster.at({queue: witness.stored_ms + 1})[queue]
            begin, why = min(max(found, begin), first.end), "its broker has lost its last messages"
        changes[queue] = QueueChange(f"{_described(witness, seen[queue])}: {why}", begin)
    return changes


def report_changes(options: SelectionOptions, changes: Mapping[QueueId, QueueChange]) -> None:
    """Reports queues that are not the ones that were read.

    Raises:
        ReadFailed: failOnDataLoss is true.
    """
    for queue, change in changes.items():
        report_loss(
            options,
            queue,
            f"{change.what}. What the queue had behind it and was not read is lost",
            instead=f"begin at offset {change.begin}, with the first message that was not read; or "
            "begin with a new checkpoint or folder",
        )


def witnesses_of(cluster: ClusterMetadata, group: str, offsets: Mapping[QueueId, int]) -> Witnesses:
    """The last message before each offset, of queues that have it."""
    wanted = {queue: offset - 1 for queue, offset in offsets.items() if offset > 0}
    seen = cluster.sightings(group, wanted)
    return {queue: one.message for queue, one in seen.items() if one.message is not None}


def _is_doubtful(witness: Witness, seen: Sighting) -> bool:
    if seen.message is not None:
        return not witness.is_at(seen.message)
    # A gap inside the queue says nothing.
    return not seen.first <= witness.offset < seen.end


def _is_behind(message: Witness | None, witness: Witness) -> bool:
    """Whether a later message of the queue is before the witness in the log: that cannot be.

    Of a witness without a log offset only the time is compared.
    """
    if message is None:
        return False
    if witness.log_offset == UNKNOWN:
        return message.stored_ms < witness.stored_ms
    return message.log_offset <= witness.log_offset


def _is_older(message: Witness, witness: Witness) -> bool:
    """Whether a message was stored before the witness, or is it."""
    is_before = witness.log_offset == UNKNOWN or message.log_offset <= witness.log_offset
    return is_before and message.stored_ms <= witness.stored_ms


def _described(witness: Witness, seen: Sighting) -> str:
    stored = f"stored at {_time(witness.stored_ms)}"
    if witness.offset >= seen.end:
        return (
            f"it ends at {seen.end}, and has been read up to {witness.offset + 1}, to a message "
            f"{stored}"
        )
    if seen.message is None:
        return f"it begins at {seen.first} with messages from before the one at {witness.offset}"
    return (
        f"the message at offset {witness.offset}, stored at {_time(seen.message.stored_ms)}, is "
        f"not the one that was read there, {stored}"
    )


def _time(at_ms: int) -> str:
    try:
        return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(" ", "milliseconds")
    except (ValueError, OverflowError, OSError):
        return f"{at_ms} ms since 1970"
