"""What a channel of kombu has from the broker. It is apart, so that it outlives the channel."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from sprocket.base.errors import SprocketError
from sprocket.integrations.queues.mail import MailBox
from sprocket.message.message import StoredMessage
from sprocket.message.popped_message import PoppedMessage


class Delivered(NamedTuple):
    """What arrived for a channel and its consumer has not got yet."""

    queue: str
    what: StoredMessage | SprocketError


class ChannelMessages:
    """Messages of one channel.

    Attributes:
        arrived: what its consumers have not got yet; the loop's thread appends, and the consumer's
            thread takes.
        leases: what they have got and not settled, by delivery tag.
        mail: the same of mail, with its box.
    """

    def __init__(self) -> None:
        self.arrived: deque[Delivered] = deque()
        self.leases: dict[str, PoppedMessage] = {}
        self.mail: dict[str, tuple[StoredMessage, MailBox]] = {}

    def take_back(self, queue: str) -> list[PoppedMessage]:
        """Removes what arrived from a queue and returns what can be given back."""
        all_of_it = [self.arrived.popleft() for _ in range(len(self.arrived))]
        self.arrived.extendleft(reversed([each for each in all_of_it if each.queue != queue]))
        return [
            each.what
            for each in all_of_it
            if each.queue == queue and isinstance(each.what, PoppedMessage)
        ]

    def take_all(self) -> list[PoppedMessage]:
        """Removes everything; mail is put back, and the rest that can be given back is returned."""
        for message, box in reversed(self.mail.values()):
            box.put_back(message)
        self.mail.clear()
        arrived = [each.what for each in self.arrived if isinstance(each.what, PoppedMessage)]
        found = [*self.leases.values(), *arrived]
        self.arrived.clear()
        self.leases.clear()
        return found
