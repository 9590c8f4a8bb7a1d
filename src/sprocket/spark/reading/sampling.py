"""Which queues are recognised before a micro-batch, by their witnesses. Pure.

A topic that is made anew, a store that is replaced and a broker that loses the end of its log
change every queue whose messages were there, and that of the newest messages first: queues of a
broker share one log. So of a topic with many queues at a broker, the newest witnesses are enough
at each micro-batch; the others take turns. If one of them is not there, all are asked about.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from sprocket.clientcore.witness import Witness
from sprocket.message.queue import QueueId
from sprocket.spark.options.checkpoint import Witnesses

#: Of a topic at a broker with at most so many queues, all that have moved are asked about.
FEW_QUEUES = 16
#: How many of the newest witnesses are asked about otherwise; several, as times may be equal.
_NEWEST = 8
#: How many others have their turn when routes are looked up again.
_TURN = 64


def chosen(
    witnesses: Witnesses, moved: Collection[QueueId], *, is_due: bool, turn: int
) -> Witnesses:
    """The witnesses to ask about before a micro-batch.

    Args:
        witnesses: all that are known of queues which answer.
        moved: queues that have new messages.
        is_due: whether routes were looked up again; queues without new messages are included then.
        turn: how many times that was before; the first time all are asked about.
    """
    found: Witnesses = {}
    for some in _together(witnesses):
        if is_due and turn == 0:
            queues = some
        elif len(some) <= FEW_QUEUES:
            queues = [queue for queue in some if is_due or queue in moved]
        else:
            queues = _of_many(some, witnesses, moved, is_due=is_due, turn=turn)
        found.update((queue, witnesses[queue]) for queue in queues)
    return found


def beside(witnesses: Witnesses, changed: Collection[QueueId]) -> Witnesses:
    """The witnesses of all queues that share topic and broker with one that has changed."""
    places = {(queue.broker, queue.topic) for queue in changed}
    return {
        queue: witness
        for queue, witness in witnesses.items()
        if (queue.broker, queue.topic) in places
    }


def _of_many(
    some: list[QueueId],
    witnesses: Witnesses,
    moved: Collection[QueueId],
    *,
    is_due: bool,
    turn: int,
) -> list[QueueId]:
    if not is_due and not any(queue in moved for queue in some):
        return []
    found = sorted(some, key=lambda queue: _age(witnesses[queue]))[-_NEWEST:]
    if is_due:
        first = turn * _TURN % len(some)
        found += (some + some)[first : first + min(_TURN, len(some))]
    return found


def _age(witness: Witness) -> tuple[int, int]:
    return witness.stored_ms, witness.log_offset


def _together(queues: Iterable[QueueId]) -> list[list[QueueId]]:
    """Queues by topic and broker, each group sorted."""
    found: dict[tuple[str, str], list[QueueId]] = {}
    for queue in sorted(queues):
        found.setdefault((queue.broker, queue.topic), []).append(queue)
    return list(found.values())
