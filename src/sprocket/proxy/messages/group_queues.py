"""The queue of a message group. Pure.

The same choice as RocketMQ's proxy makes, so that messages of one group stay in one queue whichever
of the two they pass.
Source: SendMessageActivity of RocketMQ 5.3 (module proxy), which uses `Hashing.consistentHash` of
Guava: a linear congruential generator.
"""

from __future__ import annotations

from sprocket.message.hashing import java_hash

_MASK = (1 << 64) - 1
_FACTOR = 2862933555777941757


def queue_of_group(group: str, queues: int) -> int:
    """The index of the queue of a message group, of some queues."""
    return consistent_hash(java_hash(group), queues)


def consistent_hash(number: int, buckets: int) -> int:
    """The bucket of a number: one more bucket moves few numbers, and those into it."""
    state = number & _MASK
    chosen = 0
    while True:
        state = (_FACTOR * state + 1) & _MASK
        drawn = (state >> 33) + 1
        if drawn == 1 << 31:  # Java's number is negative then
            return chosen
        following = int((chosen + 1) / (drawn / (1 << 31)))
        if following >= buckets:
            return chosen
        chosen = following
