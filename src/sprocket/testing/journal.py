"""Records what happened to every message of a simulated run, as its clients saw it.

Invariants compare the cluster with it, and it gives the story of a message when one does not hold.
"""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

from sprocket.message.message import StoredMessage
from sprocket.message.queue import QueueId
from sprocket.testing.groups import GroupRecord
from sprocket.testing.network import Network


class Event(NamedTuple):
    """An event of a run."""

    at: float
    who: str
    what: str
    key: str

    def __str__(self) -> str:
        return f"{self.at:10.4f}  {self.who:<12} {self.what} {self.key}".rstrip()


class Journal:
    """The events in order, and the state that follows from them.

    Attributes:
        bodies: bodies of all messages that anybody tried to send, by key.
        acknowledged: acknowledged queue and offset by key.
        deliveries: number of deliveries to listeners by key.
        levels: delay level by key, for those that have one.
        failures: number of failures by key before a listener succeeds; absent for 0.
        groups: records of consumer groups by name.
        complaints: errors that clients noticed.
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
        """Records an error that a client noticed."""
        self.complaints.append(what)
        self.note("complaint", what)

    @property
    def now(self) -> float:
        """The virtual time, in seconds."""
        return self._network.now()

    def group(self, name: str, topics: tuple[str, ...]) -> GroupRecord:
        """The record of a group; makes it if there is none."""
        return self.groups.setdefault(name, GroupRecord(self, name, topics))

    def sent_to(self, topics: tuple[str, ...]) -> list[str]:
        """Sorted keys of the acknowledged messages of topics."""
        return sorted(k for k, (queue, _) in self.acknowledged.items() if queue.topic in topics)

    def note(self, who: str, what: str, key: str = "") -> None:
        """Records an event, which also goes into the digest of the run's history."""
        event = Event(self._network.now(), who, what, key)
        self.events.append(event)
        self._network.note(f"{who} {what} {key}")

    def sending(self, who: str, key: str, body: bytes) -> None:
        """Records the begin of a send."""
        self.bodies[key] = body
        self.note(who, "sends", key)

    def acknowledge(self, who: str, key: str, queue: QueueId, offset: int) -> None:
        """Records the acknowledgement of a message."""
        self.acknowledged[key] = (queue, offset)
        self.note(who, f"gets acknowledgement at {queue} offset {offset} for", key)

    def story(self, key: str) -> str:
        """All events of a message, and of the cluster since its first one."""
        own = [event for event in self.events if event.key == key]
        place = self.acknowledged.get(key)
        lines = [f"the story of {key}" + (f", stored at {place[0]} {place[1]}" if place else "")]
        first = own[0].at if own else 0.0
        lines += [
            str(event) for event in self.events if event.key in ("", key) and event.at >= first
        ]
        return "\n".join(lines)


def key_of(message: StoredMessage) -> str:
    """The key of a message of a simulated producer."""
    (key,) = message.keys
    return key
