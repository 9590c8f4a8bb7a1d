"""The two forms of the stream, as a master speaks them: the plain one, and the one with epochs.

A form knows what is on the wire and who is at the other end. All else is the same: see `Master`.
"""

from __future__ import annotations

from typing import Protocol

from sprocket.base.errors import RemoteProtocolError
from sprocket.base.watermark import Watermark
from sprocket.replication.copies import Copies
from sprocket.replication.epoch_file import EpochFile
from sprocket.replication.epoch_frames import MasterHello, MemberDecoder, encode_head
from sprocket.replication.frames import HEAD, ReportDecoder
from sprocket.replication.in_sync_copies import InSyncCopies
from sprocket.replication.slave_link import SlaveDecoder, SlaveLink
from sprocket.replication.stream_start import FreshStart

_FIRST = FreshStart(0)


class MasterForm(Protocol):
    """What a master asks of a form.

    Attributes:
        has_confirmed: whether frames carry the confirmed offset.
    """

    has_confirmed: bool

    def decoder(self) -> SlaveDecoder:
        """Reads what one slave sends."""
        ...

    def is_known(self, link: SlaveLink) -> bool:
        """Whether a slave is known, so that its reports count."""
        ...

    def report(self, link: SlaveLink, offset: int, *, end: int, now: float) -> None:
        """Records a report.

        Args:
            end: the end of the master's log.
            now: time of the loop.
        """
        ...

    def forget(self, link: SlaveLink) -> None:
        """Drops a connection that is closed."""
        ...

    def replicated(self, end: int) -> int:
        """The log offset up to which senders need not wait; 0 if they never wait."""
        ...

    def readable(self, end: int) -> int:
        """The log offset up to which readers see the log; 0 if they see all of it."""
        ...

    @property
    def is_alone(self) -> bool:
        """Whether both of these rise with the log itself."""
        ...

    def greeting(self, link: SlaveLink, end: int) -> bytes:
        """The answer to a slave that has greeted.

        Args:
            end: the end of the master's log, as far as slaves get it.

        Raises:
            RemoteProtocolError: it is refused.
        """
        ...

    def fresh(self, link: SlaveLink, fresh: FreshStart) -> FreshStart:
        """Where a slave without a log begins.

        Args:
            fresh: what is set here.
        """
        ...

    def batch_end(self, offset: int, end: int) -> int:
        """Where a frame must end at the latest that begins at an offset and may go up to `end`."""
        ...

    def head(self, offset: int, size: int) -> bytes:
        """The head of a frame."""
        ...


class PlainForm:
    """The stream of RocketMQ 4.x, and of 5.x without a controller."""

    has_confirmed = False

    def __init__(self, copies: Copies) -> None:
        self._copies = copies
        #: Where the master's log ended when the copies were last counted.
        self._end = 0

    @property
    def is_alone(self) -> bool:
        """Whether sends wait for slaves in general, and for none now."""
        rules = self._copies.rules
        return rules.follows_sync and rules.wanted > 1 and self._copies.wanted(self._end) <= 1

    def decoder(self) -> SlaveDecoder:
        """Reads reports."""
        return ReportDecoder()

    def is_known(self, link: SlaveLink) -> bool:
        """Whether a slave is registered at the host that a link comes from."""
        return self._copies.is_known(link.host)

    def report(self, link: SlaveLink, offset: int, *, end: int, now: float) -> None:
        """Records a report of a link."""
        self._copies.report(link.number, link.host, offset)

    def forget(self, link: SlaveLink) -> None:
        """Drops a link."""
        self._copies.forget(link.number)

    def replicated(self, end: int) -> int:
        """The log offset up to which there are as many copies as wanted."""
        self._end = end
        if self._copies.rules.wanted <= 1:
            return 0
        return self._copies.replicated(self._copies.wanted(end), end)

    def readable(self, end: int) -> int:
        """The log offset up to which there are the least copies."""
        least = self._copies.rules.least
        return self._copies.replicated(least, end) if least > 1 else 0

    def greeting(self, link: SlaveLink, end: int) -> bytes:
        """Nothing: slaves do not greet."""
        return b""

    def fresh(self, link: SlaveLink, fresh: FreshStart) -> FreshStart:
        """What is set here."""
        return fresh

    def batch_end(self, offset: int, end: int) -> int:
        """A frame may hold anything."""
        return end

    def head(self, offset: int, size: int) -> bytes:
        """Log offset and size."""
        return HEAD.pack(offset, size)


class EpochForm:
    """The stream with epochs, of a master in its epoch.

    Args:
        copies: what is known of the members' logs.
        epochs: the epochs of the master's log; the last one is its own.
        confirmed: the confirmed offset.
    """

    has_confirmed = True

    def __init__(self, copies: InSyncCopies, epochs: EpochFile, confirmed: Watermark) -> None:
        self._copies = copies
        self._epochs = epochs
        self._confirmed = confirmed

    def decoder(self) -> SlaveDecoder:
        """Reads greetings and reports."""
        return MemberDecoder()

    def is_known(self, link: SlaveLink) -> bool:
        """Every slave says who it is, and a learner never counts."""
        return True

    def report(self, link: SlaveLink, offset: int, *, end: int, now: float) -> None:
        """Records a report of a member."""
        if (member := link.member) is not None:
            self._copies.report(link.number, member, offset, end=end, now=now)

    def forget(self, link: SlaveLink) -> None:
        """Records that a member has lost a connection."""
        self._copies.forget(link.number)

    # A message may be stored while the set is large enough, and the set shrink before all have it.
    # What is left of the set has it then, and that is too little.
    def replicated(self, end: int) -> int:
        """The confirmed offset while the in-sync set has enough members; 0 otherwise."""
        return self._copies.readable(end) if self._copies.is_enough(end) else 0

    def readable(self, end: int) -> int:
        """The confirmed offset: what all of the in-sync set have."""
        return self._copies.readable(end)

    @property
    def is_alone(self) -> bool:
        """Whether the in-sync set is this master alone."""
        return self._copies.is_alone

    def greeting(self, link: SlaveLink, end: int) -> bytes:
        """The end of the log and its epochs."""
        if link.member == self._copies.own:
            raise RemoteProtocolError(f"it has this broker's own number, {link.member}")
        epochs = self._epochs.epochs
        return MasterHello(end, epochs.last_epoch, epochs).encode()

    def fresh(self, link: SlaveLink, fresh: FreshStart) -> FreshStart:
        """As the slave asks: the last file, or all; or from the log offset that is set here."""
        if link.hello is not None and link.hello.from_last_file:
            return FreshStart()
        return fresh if fresh.offset > 0 else _FIRST

    def batch_end(self, offset: int, end: int) -> int:
        """The end of the epoch at an offset."""
        epochs = self._epochs.epochs
        entry = epochs.at(offset)
        if entry is None:  # a log that had no epochs before its first one
            return end
        return min(end, epochs.end_of(entry, end))

    def head(self, offset: int, size: int) -> bytes:
        """With the epoch, its start, and the confirmed offset."""
        epochs = self._epochs.epochs
        epoch, start = epochs.at(offset) or epochs.entries[0]
        return encode_head(offset, size, epoch, start, self._confirmed.value)
