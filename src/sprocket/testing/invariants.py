"""What must hold in every run, by name. Each raises `Violation` with the story of a message."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sprocket.message.message import StoredMessage
from sprocket.message.queue import QueueId
from sprocket.testing.journal import Journal, key_of


class Violation(AssertionError):
    """An invariant does not hold.

    Attributes:
        journal: all that happened before, once a scenario has failed with it.
    """

    journal: Journal | None = None


def offsets_pass_only_settled(journal: Journal, committed: Mapping[QueueId, int]) -> None:
    """A committed offset never stands behind a message that no listener finished or gave back."""
    for queue in sorted(committed):
        for offset in range(committed[queue]):
            if offset not in journal.settled[queue]:
                place = (queue, offset)
                key = next((k for k, at in journal.acknowledged.items() if at == place), "")
                raise Violation(
                    f"{queue} is committed up to {committed[queue]}, but offset {offset} is "
                    f"neither finished nor given back\n{journal.story(key)}"
                )


def stored_is_dense_and_true(
    journal: Journal, stored: Mapping[QueueId, Sequence[StoredMessage]]
) -> None:
    """A queue's offsets have no gaps, and every message in it is one that somebody sent."""
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
    """What a sender was told is stored lies where it was told, once the weather is fair."""
    for key, (queue, offset) in journal.acknowledged.items():
        messages = stored.get(queue, ())
        found = messages[offset].keys if offset < len(messages) else []
        if found != [key]:
            raise Violation(f"{key} was acknowledged and is lost\n{journal.story(key)}")


def acknowledged_is_consumed(journal: Journal) -> None:
    """When all is quiet, a listener has finished everything that was acknowledged."""
    for key in journal.unfinished:
        raise Violation(
            f"{len(journal.unfinished)} acknowledged messages were never consumed\n"
            f"{journal.story(key)}"
        )
