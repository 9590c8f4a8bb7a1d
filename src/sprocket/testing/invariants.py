"""The invariants of every run. Each raises `Violation` with the story of a message.

The first ones compare a journal with what brokers have stored; those of a group check its record.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

from sprocket.message.message import StoredMessage
from sprocket.message.properties import REAL_TOPIC
from sprocket.message.queue import QueueId
from sprocket.testing.groups import Call, GroupRecord
from sprocket.testing.journal import Journal, key_of

#: Seconds for which a member of an ordered group trusts its lease, even if it is lost meanwhile.
TRUST_SECONDS = 30.0


class Violation(AssertionError):
    """An invariant does not hold.

    Attributes:
        journal: all events before it; set when a scenario fails.
    """

    journal: Journal | None = None


def stored_is_dense_and_true(
    journal: Journal, stored: Mapping[QueueId, Sequence[StoredMessage]]
) -> None:
    """A queue's offsets have no gaps, and every message in it was sent with that body."""
    for queue in sorted(stored):
        for offset, message in enumerate(stored[queue]):
            if message.queue_offset != offset or message.queue != queue:
                raise Violation(f"{queue} has {message.queue} {message.queue_offset} at {offset}")
            key = key_of(message)
            if message.body != journal.bodies.get(key):
                raise Violation(f"{queue} offset {offset} is not what {key} was sent as")


def acknowledged_is_stored(
    journal: Journal, stored: Mapping[QueueId, Sequence[StoredMessage]]
) -> None:
    """Every acknowledged message is stored at the acknowledged queue and offset, at the end."""
    for key, (queue, offset) in journal.acknowledged.items():
        if key in journal.levels:
            continue  # its acknowledged place is in the schedule topic
        messages = stored.get(queue, ())
        found = messages[offset].keys if offset < len(messages) else []
        if found != [key]:
            raise Violation(f"{key} was acknowledged and is lost\n{journal.story(key)}")


# Of a group.


def group_consumed_all(journal: Journal, record: GroupRecord, *, dead: Collection[str]) -> None:
    """At the end, every acknowledged message is consumed, or a dead letter."""
    wanted = [key for key in journal.sent_to(record.topics) if record.wants(key)]
    left = [key for key in wanted if key not in record.finished and key not in dead]
    if left:
        raise Violation(
            f"{len(left)} acknowledged messages were never consumed by {record.name}\n"
            f"{journal.story(left[0])}"
        )


def committed_passes_only_settled(
    journal: Journal, record: GroupRecord, committed: Mapping[QueueId, int]
) -> None:
    """A group's offset never passes a message that is neither finished nor sent back."""
    for queue in sorted(committed):
        settled = record.settled[queue]
        for offset in range(committed[queue]):
            if offset not in settled:
                calls = [c for c in record.calls if c.queue == queue and c.offset == offset]
                place = (queue, offset)
                keys = [call.key for call in calls]
                keys += [key for key, at in journal.acknowledged.items() if at == place]
                raise Violation(
                    f"{record.name} is committed up to {committed[queue]} in {queue}, but offset "
                    f"{offset} is neither finished nor given back\n"
                    f"{journal.story(keys[0] if keys else '')}"
                )


def a_queue_has_one_owner(journal: Journal, record: GroupRecord) -> None:
    """No member of an ordered group gets a message of a queue while another one processes one.

    A member whose lease expires while its listener runs cannot be stopped. So a call excludes
    others only for as long as its member could trust the lease when the call began.
    """
    for calls in _by_queue(record).values():
        under_way: list[Call] = []
        for call in calls:
            under_way = [
                each
                for each in under_way
                if call.began < min(_end(each), each.began + TRUST_SECONDS)
            ]
            if under_way:
                other = under_way[0]
                raise Violation(
                    f"{call.member} gets {call.queue} offset {call.offset} at {call.began:.4f} "
                    f"while {other.member} is at offset {other.offset}\n"
                    f"{journal.story(call.key)}"
                )
            under_way.append(call)


def a_queue_is_in_order(journal: Journal, record: GroupRecord) -> None:
    """A member of an ordered group gets a message only when all before it in its queue are done."""
    # `ready[n]` is when all offsets before n were settled, so each call needs only one comparison.
    for queue, calls in _by_queue(record).items():
        settled = record.ever_settled[queue]
        ready = [-math.inf]
        for offset in range(max(call.offset for call in calls)):
            ready.append(max(ready[-1], settled.get(offset, math.inf)))
        for call in calls:
            if call.began < ready[call.offset]:
                raise Violation(
                    f"{call.member} gets {queue} offset {call.offset} at {call.began:.4f}, before "
                    f"all that lies before it was done\n{journal.story(call.key)}"
                )


def failed_ends_within_limit(
    journal: Journal, record: GroupRecord, *, limit: int, dead: Mapping[str, int]
) -> None:
    """A message that fails more often than the limit is a dead letter after exactly that many
    retries; one that fails less often is consumed, and no dead letter."""
    most: dict[str, int] = defaultdict(int)
    for call in record.calls:
        most[call.key] = max(most[call.key], call.times)
    for key in journal.sent_to(record.topics):
        fails = journal.failures.get(key, 0)
        if most[key] > limit:
            wrong = f"was offered again {most[key]} times, {limit} is the limit"
        elif fails > limit and (key not in dead or most[key] < limit):
            wrong = f"failed {most[key]} times of {limit} and is a dead letter {dead.get(key, 0)}x"
        elif fails <= limit and key in dead:
            wrong = f"fails only {fails} times and is a dead letter"
        else:
            continue
        raise Violation(f"{key} {wrong}\n{journal.story(key)}")


def a_move_is_obeyed(journal: Journal, record: GroupRecord, ends: Mapping[QueueId, int]) -> None:
    """All messages from an offset on that an operator set are delivered after that.

    Args:
        journal, record: of the run and of the group.
        ends: end offsets of the queues.
    """
    for queue, move in record.moves.items():
        seen = {
            call.offset for call in record.calls if call.queue == queue and call.began >= move.at
        }
        for offset in range(move.offset, ends.get(queue, 0)):
            if offset not in seen:
                raise Violation(
                    f"{queue} was moved to {move.offset} at {move.at:.4f}, and offset {offset} did "
                    f"not come after that\n{journal.story('')}"
                )


def owners_come_back(journal: Journal, record: GroupRecord, *, seconds_max: float) -> None:
    """No queue has no owner for longer than `seconds_max`, which covers leases and restarts."""
    for cause, gaps in record.gaps.items():
        if max(gaps, default=0.0) > seconds_max:
            raise Violation(
                f"a queue of {record.name} had no owner for {max(gaps):.1f} s, after a {cause}, "
                f"{seconds_max:g} s is the bound\n{journal.story('')}"
            )


def owners_do_not_overlap(journal: Journal, record: GroupRecord, *, seconds_max: float) -> None:
    """No queue has two owners for longer than `seconds_max`: until they learn of each other."""
    for cause, overlaps in record.overlaps.items():
        if max(overlaps, default=0.0) > seconds_max:
            raise Violation(
                f"a queue of {record.name} had two owners for {max(overlaps):.1f} s, after a "
                f"{cause}, {seconds_max:g} s is the bound\n{journal.story('')}"
            )


# Of the log.


def delayed_comes_once(
    journal: Journal, waiting: Iterable[StoredMessage], arrived: Iterable[StoredMessage]
) -> None:
    """Each message of the schedule topic was delivered once, according to the log.

    Args:
        journal: of the run.
        waiting: all messages of the schedule topic of one broker.
        arrived: all messages in the broker's other topics that were delivered from there.
    """
    went = Counter(_delayed(message) for message in waiting)
    came = Counter(_delayed(m) for m in arrived if REAL_TOPIC in m.properties)
    for (topic, key, times), count in went.items():
        if came[topic, key, times] != count:
            raise Violation(
                f"{key} waited for {topic} {count} times (try {times}) and came "
                f"{came[topic, key, times]} times\n{journal.story(key)}"
            )


def delayed_is_not_early(
    journal: Journal,
    waiting: Iterable[StoredMessage],
    arrived: Iterable[StoredMessage],
    *,
    delays_ms: Sequence[int],
) -> None:
    """No message was delivered before its delay was over, by the broker's clock."""
    due: dict[tuple[str, str, int], int] = {}
    for message in waiting:
        at = message.stored_ms + delays_ms[message.queue.number]
        due[_delayed(message)] = min(at, due.get(_delayed(message), at))
    for message in arrived:
        if REAL_TOPIC in message.properties and message.stored_ms < due[_delayed(message)]:
            early = due[_delayed(message)] - message.stored_ms
            key = key_of(message)
            raise Violation(f"{key} came {early} ms early\n{journal.story(key)}")


def _delayed(message: StoredMessage) -> tuple[str, str, int]:
    return (message.properties[REAL_TOPIC], key_of(message), message.reconsume_times)


def _end(call: Call) -> float:
    return math.inf if call.ended is None else call.ended


def _by_queue(record: GroupRecord) -> dict[QueueId, list[Call]]:
    calls: dict[QueueId, list[Call]] = defaultdict(list)
    for call in record.calls:
        calls[call.queue].append(call)
    return calls
