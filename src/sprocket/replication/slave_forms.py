"""The two forms of the stream, as a slave speaks them: the plain one, and the one with epochs.

Source: DefaultHAClient, AutoSwitchHAClient of RocketMQ 5.3.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Protocol

from sprocket.base.errors import ConnectionLost, RemoteProtocolError, SprocketError
from sprocket.base.watermark import Watermark
from sprocket.replication.epoch_file import EpochFile
from sprocket.replication.epoch_frames import (
    EpochFrame,
    EpochFrameDecoder,
    MasterHello,
    SlaveHello,
    encode_report,
)
from sprocket.replication.frames import REPORT, Frame, FrameDecoder
from sprocket.store.store import Store

logger = logging.getLogger(__name__)

#: So often a master is asked again that does not list the epoch for which it was elected.
_PATIENCE = 4


class LogsDiffer(SprocketError):
    """This log has records that the master's has not: it must be cut before it can be copied.

    Attributes:
        cut_at: log offset up to which both are the same.
        end: where this log ends.
    """

    def __init__(self, cut_at: int, end: int) -> None:
        super().__init__(
            f"this log ends at {end}, and is the master's up to {cut_at}: what follows there was "
            "never confirmed, and is cut"
        )
        self.cut_at = cut_at
        self.end = end


class SlaveStream(Protocol):
    """What a slave asks of the form of one connection.

    Attributes:
        greeting: what is sent first.
        is_ready: whether reports may be sent.
    """

    greeting: bytes
    is_ready: bool

    def feed(self, data: bytes) -> Sequence[Frame | EpochFrame]:
        """The frames that are complete now.

        Raises:
            LogsDiffer: the log must be cut first.
            ConnectionLost, ProtocolError: this master cannot be copied; the text gives the reason.
        """
        ...

    def before(self, frame: Frame | EpochFrame) -> None:
        """Is called before the bytes of a frame are written.

        Raises:
            ConnectionLost: it does not belong to this log.
            OSError: the disk failed.
        """
        ...

    def after(self, frame: Frame | EpochFrame) -> None:
        """Is called after the last frame that arrived."""
        ...

    def report(self, offset: int) -> bytes:
        """The frame that reports a log offset."""
        ...


class PlainStream:
    """The stream of RocketMQ 4.x, and of 5.x without a controller."""

    greeting = b""
    is_ready = True

    def __init__(self) -> None:
        self._decoder = FrameDecoder()

    def feed(self, data: bytes) -> Sequence[Frame | EpochFrame]:
        """The frames that are complete now."""
        return self._decoder.feed(data)

    def before(self, frame: Frame | EpochFrame) -> None:
        """Does nothing: a frame says nothing besides."""

    def after(self, frame: Frame | EpochFrame) -> None:
        """Does nothing."""

    def report(self, offset: int) -> bytes:
        """The log offset alone."""
        return REPORT.pack(offset)


class SlaveMember:
    """What a slave knows of its group: makes the streams with epochs.

    Args:
        hello: how it greets: with its number in the group.
        epochs: the epochs of its log.
        epoch_min: gives the epoch that the master must have at least, as the elector says.
        confirmed: is raised to the confirmed offset, bounded by this log's end; a watermark that
            the store was opened with, so that readers see no more.
        may_be_rocketmqs: whether masters may be RocketMQ's. Such a one leaves its epoch out of its
            list if the one before began at the same offset, so its newest epoch may be too low.
    """

    __slots__ = (
        "_confirmed", "_epoch_min", "_epochs", "_followed", "_hello", "_may_be_rocketmqs",
        "_refused", "_store",
    )  # fmt: skip

    def __init__(
        self,
        store: Store,
        *,
        hello: SlaveHello,
        epochs: EpochFile,
        epoch_min: Callable[[], int],
        confirmed: Watermark,
        may_be_rocketmqs: bool = False,
    ) -> None:
        self._may_be_rocketmqs = may_be_rocketmqs
        #: The epoch of a master that left it out of its list, once its log was found to continue.
        self._followed = -1
        #: How often a master was refused that did not list its epoch, and the epoch.
        self._refused = (-1, 0)
        self._store = store
        self._hello = hello
        self._epochs = epochs
        self._epoch_min = epoch_min
        self._confirmed = confirmed

    def stream(self) -> SlaveStream:
        """The form of a new connection."""
        return _EpochStream(self)

    @property
    def greeting(self) -> bytes:
        """The slave's first frame."""
        return self._hello.encode()

    def compare(self, master: MasterHello) -> None:
        """Compares the logs by their epochs.

        Raises:
            LogsDiffer: this one must be cut.
            ConnectionLost: this master must not be copied, or cannot be; the text gives the reason.
        """
        log = self._store.replica
        # An epoch in which this broker led and nothing was sent is in no other list, and says
        # nothing about the records here.
        own = self._epochs.epochs.cut(log.end)
        wanted = self._epoch_min()
        least = max(wanted, self._epochs.epochs.last_epoch)
        is_left_out = master.last_epoch < least and self._leaves_out(wanted)
        if master.last_epoch < (own.last_epoch if is_left_out else least):
            raise ConnectionLost(
                f"it is the master of epoch {master.last_epoch}, and epoch {least} has begun: it "
                "does not know yet that another broker leads, or has led"
            )
        if not own:
            if log.end > master.end:
                raise ConnectionLost(
                    f"its log ends at {master.end}, before this one, which ends at {log.end} and "
                    "has no epochs. Compare both; if the master is right, empty this broker's "
                    "folder, so that it copies anew"
                )
            self._epochs.cut(log.end)
            self._followed = wanted
            return
        common = own.common_end(log.end, master.epochs, master.end)
        # In the newest epoch of its list such a master has written in its own as well, and another
        # one may have written something else there.
        if is_left_out and self._followed != wanted and common is not None and master.epochs:
            common = min(common, master.epochs.entries[-1].start)
        if common is None or common < log.start:
            raise ConnectionLost(
                f"no part of this log, [{log.start}, {log.end}), is known to be the master's: what "
                "they had in common is deleted. Empty this broker's folder, so that it copies anew"
            )
        if common < log.end:
            raise LogsDiffer(common, log.end)
        self._epochs.cut(common)
        self._followed = wanted

    # It may only not have heard of its election yet, so some attempts are refused first.
    def _leaves_out(self, epoch: int) -> bool:
        """Whether the master of an epoch that does not list it has left it out."""
        if not self._may_be_rocketmqs:
            return False
        refused, times = self._refused
        times = times + 1 if refused == epoch else 1
        self._refused = (epoch, times)
        return times > _PATIENCE

    def enter(self, frame: EpochFrame) -> None:
        """Records a new epoch before records of it count.

        Raises:
            ConnectionLost: the epoch is not one that follows.
            OSError: the disk refuses it.
        """
        last = self._epochs.epochs.last
        if last is not None and frame.epoch == last.epoch and frame.epoch_start == last.start:
            return
        log = self._store.replica
        if not frame.data and (frame.epoch_start > log.end or log.is_empty):
            return  # a heartbeat; nothing of its epoch is here yet
        try:
            self._epochs.trim(log.start)
            self._epochs.add(frame.epoch, frame.epoch_start)
        except ValueError as error:
            raise ConnectionLost(f"the master's epochs do not follow this log's: {error}") from None
        logger.info("epoch %d begins at log offset %d", frame.epoch, frame.epoch_start)

    def confirm(self, told: int) -> None:
        """Shows readers what the master says is confirmed, as far as it is here."""
        log = self._store.replica
        offset = min(told, log.end)
        if offset > self._confirmed.value:
            self._confirmed.rise(offset)
            log.confirm()


class _EpochStream:
    """The form of one connection to a master with epochs."""

    __slots__ = ("_decoder", "_member", "greeting", "is_ready")

    def __init__(self, member: SlaveMember) -> None:
        self._decoder = EpochFrameDecoder()
        self._member = member
        self.greeting = member.greeting
        self.is_ready = False

    def feed(self, data: bytes) -> Sequence[Frame | EpochFrame]:
        """The frames that are complete now; before them the master's greeting is checked."""
        frames = self._decoder.feed(data)
        if not self.is_ready and self._decoder.hello is not None:
            self._member.compare(self._decoder.hello)
            self.is_ready = True
            if frames:
                raise RemoteProtocolError("the master sends its log before it is asked for it")
        return [frame for frame in frames if frame.offset >= 0]

    def before(self, frame: Frame | EpochFrame) -> None:
        """Records a new epoch."""
        assert isinstance(frame, EpochFrame)
        self._member.enter(frame)

    def after(self, frame: Frame | EpochFrame) -> None:
        """Takes the confirmed offset."""
        assert isinstance(frame, EpochFrame)
        self._member.confirm(frame.confirmed)

    def report(self, offset: int) -> bytes:
        """State and log offset."""
        return encode_report(offset)
