"""What happened to every message of a simulated run, as those who took part saw it.

It is the model that invariants compare the cluster with, and it tells a message's story when one
of them does not hold.
"""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

from sprocket.message.message import StoredMessage
from sprocket.message.queue import QueueId
from sprocket.testing.groups import GroupRecord
from sprocket.testing.network import Network


class Event(NamedTuple):
    """One thing that happened."""

    at: float
    who: str
    what: str
    key: str

    def __str__(self) -> str:
        return f"{self.at:10.4f}  {self.who:<12} {self.what} {self.key}".rstrip()


class Journal:
    """Events in their order, and what follows from them.

    Attributes:
        bodies: every message that somebody tried to send, by key.
        acknowledged: where the broker said it stored a message, by key.
        deliveries: how many times a listener got each key.
        levels: the delay level of each key that has one.
        failures: how many times each key is to fail before it succeeds; absent for never.
        groups: what consumer groups did, by name.
        complaints: what somebody saw that must not be.
    """

    def __init__(self, network: Network) -> None:
        self._network = network
        self.events: list[Event] = []
        self.bodies: dict[str, bytes] = {}
        self.acknowledged: dict[str, tuple[QueueId, int]] = {}
        self.deliveries: dict[str, int] = defaultdict(int)
        self.levels: dict[str, int] = {}
        self.failures: dict[str, int] = {}
        self.groups: dict[str, GroupRecord] = {}
        self.complaints: list[str] = []

    def complain(self, what: str) -> None:
        """Somebody saw what must not be."""
        self.complaints.append(what)
        self.note("complaint", what)

    @property
    def now(self) -> float:
        """The virtual time, in seconds."""
        return self._network.now()

    def group(self, name: str, topics: tuple[str, ...]) -> GroupRecord:
        """Begins the record of a group."""
        return self.groups.setdefault(name, GroupRecord(self, name, topics))

    def sent_to(self, topics: tuple[str, ...]) -> list[str]:
        """Keys of acknowledged messages of some topics, sorted."""
        return sorted(k for k, (queue, _) in self.acknowledged.items() if queue.topic in topics)

    def note(self, who: str, what: str, key: str = "") -> None:
        """Writes down an event; it becomes part of the run's history."""
        event = Event(self._network.now(), who, what, key)
        self.events.append(event)
        self._network.note(f"{who} {what} {key}")

    def sending(self, who: str, key: str, body: bytes) -> None:
        """Somebody begins to send a message."""
        self.bodies[key] = body
        self.note(who, "sends", key)

    def acknowledge(self, who: str, key: str, queue: QueueId, offset: int) -> None:
        """A broker said that it stored it."""
        self.acknowledged[key] = (queue, offset)
        self.note(who, f"is told {queue} offset {offset} for", key)

    def story(self, key: str) -> str:
        """All that is known of a message, and of the cluster meanwhile."""
        own = [event for event in self.events if event.key == key]
        place = self.acknowledged.get(key)
        lines = [f"the story of {key}" + (f", stored at {place[0]} {place[1]}" if place else "")]
        first = own[0].at if own else 0.0
        lines += [
            str(event) for event in self.events if event.key in ("", key) and event.at >= first
        ]
        return "\n".join(lines)


def key_of(message: StoredMessage) -> str:
    """The key that a simulated producer gave it."""
    (key,) = message.keys
    return key
