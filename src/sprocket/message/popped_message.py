"""A message that was popped: it belongs to nobody, and is acknowledged by its handle. Pure."""

from __future__ import annotations

from msgspec.structs import astuple

from sprocket.message.message import StoredMessage
from sprocket.message.pop_handle import PopHandle, topic_of


class PoppedMessage(StoredMessage, gc=False, eq=False):
    """A message as a group popped it.

    Attributes:
        group: the consumer group.
        handle: what the broker knows it by. It changes with each change of its invisible time.
        received: when it was received, in seconds on the loop's clock.
        invisible_until: when the group may get it again unless it is acknowledged, on the same
            clock. The broker's own time is earlier by what its reply took.
    """

    group: str
    handle: PopHandle
    received: float
    invisible_until: float

    @classmethod
    def of(
        cls, stored: StoredMessage, group: str, handle: PopHandle, received: float
    ) -> PoppedMessage:
        """A message of a pop's reply with its handle."""
        until = received + handle.invisible_ms / 1000
        return cls(*(*astuple(stored), group, handle, received, until))

    @property
    def stored_topic(self) -> str:
        """The topic in which it lies: a retry topic, if it comes again."""
        return topic_of(self.queue.topic, self.group, self.handle.kind)
