"""Many messages as few requests: batches, and single sends of what cannot be in one. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple, Protocol

from sprocket.base.errors import UsageError
from sprocket.clientcore.envelope import Envelope, Packing, batch_envelope, batched, seal
from sprocket.message.batch import BatchedMessage, encode, size_of
from sprocket.message.ids import UniqueIds
from sprocket.message.message import Message
from sprocket.message.topic import is_retry_topic


class ParcelLimits(Protocol):
    """How much one request may hold; `ProducerConfig` is one, and describes each value."""

    @property
    def batch_count_max(self) -> int: ...

    @property
    def batch_bytes_max(self) -> int: ...


class Refused(NamedTuple):
    """A message that cannot be sent.

    Attributes:
        place: its place in the list.
    """

    place: int
    error: UsageError


class Parcel(NamedTuple):
    """One request.

    Attributes:
        messages: those in it, with their places in the list, in order.
    """

    envelope: Envelope
    messages: list[tuple[int, Message]]


class _Gathered:
    """Messages that will be in one batch."""

    def __init__(self) -> None:
        self.messages: list[tuple[int, Message]] = []
        self.parts: list[BatchedMessage] = []
        self.names: list[str] = []
        self.size = 0

    def fits(self, message: Message, size: int, count_max: int, bytes_max: int) -> bool:
        """Whether a further message may be in the batch, or it is the first."""
        return not self.messages or (
            len(self.messages) < count_max
            and self.size + size <= bytes_max
            and self.messages[0][1].wait_stored == message.wait_stored
        )

    def add(self, place: int, message: Message, part: BatchedMessage, name: str) -> None:
        """Adds a message."""
        self.messages.append((place, message))
        self.parts.append(part)
        self.names.append(name)
        self.size += size_of(part)


def parcels(
    messages: Iterable[tuple[int, Message]],
    ids: UniqueIds,
    now_ms: int,
    packing: Packing,
    limits: ParcelLimits,
) -> Iterator[Parcel | Refused]:
    """The requests for messages of one topic, in their order; each is made when it is asked for.

    A message goes alone if it has to wait, has a priority, goes to a retry topic or is so large
    that it is compressed.

    Args:
        messages: with their places in the user's list.
    """
    count_max = limits.batch_count_max
    bytes_max = min(limits.batch_bytes_max, packing.body_bytes_max)
    gathered = _Gathered()
    for place, message in messages:
        try:
            if count_max == 1 or goes_alone(message, packing):
                alone = Parcel(seal(message, ids, now_ms, packing), [(place, message)])
                if gathered.messages:
                    yield _closed(gathered, ids, now_ms, packing)
                    gathered = _Gathered()
                yield alone
                continue
            part, name = batched(message, ids, now_ms, packing)
        except UsageError as error:
            yield Refused(place, error)
            continue
        if not gathered.fits(message, size_of(part), count_max, bytes_max):
            yield _closed(gathered, ids, now_ms, packing)
            gathered = _Gathered()
        gathered.add(place, message, part, name)
    if gathered.messages:
        yield _closed(gathered, ids, now_ms, packing)


def goes_alone(message: Message, packing: Packing) -> bool:
    """Whether a message cannot be in a batch, or would be larger there.

    Raises:
        UsageError: it is no message.
    """
    try:
        is_large = len(message.body) >= packing.compress_over_bytes
        is_compressed = is_large and packing.compression != "none"
        has_own = message.waits or message.priority is not None
        return has_own or is_compressed or is_retry_topic(message.topic)
    except (AttributeError, TypeError) as error:
        raise UsageError(f"not a message that can be sent: {error}") from error


def _closed(gathered: _Gathered, ids: UniqueIds, now_ms: int, packing: Packing) -> Parcel:
    place, first = gathered.messages[0]
    if len(gathered.messages) == 1:
        return Parcel(seal(first, ids, now_ms, packing), [(place, first)])
    body = encode(gathered.parts)
    envelope = batch_envelope(first.topic, body, ids, now_ms, wait_stored=first.wait_stored)
    return Parcel(envelope._replace(parts=tuple(gathered.names)), gathered.messages)
