"""The frames of a replication connection with epochs, both ways; numbers are big-endian. Pure.

A slave greets with its number in the group; the master answers with its list of epochs and the end
of its log. Then the slave reports, and the master sends bytes of its log, those of one epoch in a
frame, each frame with the confirmed offset. `docs/formats/replication.md` has the tables.

RocketMQ 5.3 labels the last bytes of an epoch with the next one, which begins behind them. So an
epoch may begin behind the beginning of a frame.

Source: AutoSwitchHAConnection, AutoSwitchHAClient, HAConnectionState of RocketMQ 5.3.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from sprocket.base.errors import RemoteProtocolError
from sprocket.replication.epochs import EPOCHS_MAX, EpochList
from sprocket.replication.frames import FRAME_BYTES_MAX, Buffer

#: States of a connection, which each frame begins with.
HANDSHAKE, TRANSFER = 1, 2

_STATE = struct.Struct(">i")
SLAVE_HELLO = struct.Struct(">ihhq")
SLAVE_REPORT = struct.Struct(">iq")
#: State, size of the body, end of the log, last epoch; the body has `_EPOCH` for each epoch.
MASTER_HELLO = struct.Struct(">iiqi")
_EPOCH = struct.Struct(">iq")
#: State, size of the body, log offset, epoch, its start, confirmed offset; then bytes of the log.
DATA_HEAD = struct.Struct(">iiqiqq")


class SlaveHello(NamedTuple):
    """How a slave greets.

    Attributes:
        member: its number in the group.
        from_last_file: whether a slave without a log wants the master's last file only.
        is_learner: it copies, and never counts as a copy.
    """

    member: int
    from_last_file: bool = False
    is_learner: bool = False

    def encode(self) -> bytes:
        """The bytes of the frame."""
        return SLAVE_HELLO.pack(HANDSHAKE, self.from_last_file, self.is_learner, self.member)


class MasterHello(NamedTuple):
    """How a master answers.

    Attributes:
        end: where its log ends.
        last_epoch: its newest epoch; -1 if it has none.
        epochs: its epochs.
    """

    end: int
    last_epoch: int
    epochs: EpochList

    def encode(self) -> bytes:
        """The bytes of the frame."""
        body = b"".join(_EPOCH.pack(*each) for each in self.epochs.entries)
        return MASTER_HELLO.pack(HANDSHAKE, len(body), self.end, self.last_epoch) + body

    @staticmethod
    def body_bytes(head: bytes) -> int:
        """The size of the body that follows a head of `MASTER_HELLO.size` bytes.

        Raises:
            RemoteProtocolError: no master begins so.
        """
        state, size, end, _ = MASTER_HELLO.unpack(head)
        if state != HANDSHAKE or size % _EPOCH.size or not 0 <= size <= EPOCHS_MAX * _EPOCH.size:
            raise RemoteProtocolError(
                f"no master with epochs greets with state {state} and {size} bytes"
            )
        if end < 0:
            raise RemoteProtocolError(f"no log ends at {end}")
        return int(size)

    @classmethod
    def decode(cls, head: bytes, body: bytes) -> MasterHello:
        """From both parts of the frame.

        Raises:
            RemoteProtocolError: it is no such frame.
        """
        cls.body_bytes(head)
        _, _, end, last_epoch = MASTER_HELLO.unpack(head)
        try:
            epochs = EpochList(_EPOCH.iter_unpack(body))
        except ValueError as error:
            raise RemoteProtocolError(f"the master's epochs: {error}") from None
        return cls(end, last_epoch, epochs)


class EpochFrame(NamedTuple):
    """Some bytes of a log.

    Attributes:
        offset: log offset of the first of them; where the next ones begin, if there are none; -1 if
            that is not known yet.
        data: the bytes; none in a heartbeat.
        epoch, epoch_start: their epoch, or one that begins behind them; and where it begins.
        confirmed: the confirmed offset of the master.
    """

    offset: int
    data: bytes
    epoch: int
    epoch_start: int
    confirmed: int


def encode_report(offset: int) -> bytes:
    """The frame of a slave that has the log up to an offset."""
    return SLAVE_REPORT.pack(TRANSFER, offset)


def encode_head(offset: int, size: int, epoch: int, epoch_start: int, confirmed: int) -> bytes:
    """The head of a master's frame, before `size` bytes of the log; see `EpochFrame`."""
    return DATA_HEAD.pack(TRANSFER, size, offset, epoch, epoch_start, confirmed)


class MemberDecoder:
    """Reads what a slave sends, from bytes that arrive in any pieces.

    Attributes:
        hello: how it greeted; None before. A slave may greet again until it reports.
    """

    __slots__ = ("_has_reported", "_rest", "hello")

    def __init__(self) -> None:
        self._rest = b""
        self._has_reported = False
        self.hello: SlaveHello | None = None

    def feed(self, data: Buffer) -> list[int]:
        """The reports that are complete now, in order.

        Raises:
            RemoteProtocolError: no slave sends that, or not now.
        """
        data = self._rest + data
        at, reports = 0, list[int]()
        while len(data) - at >= SLAVE_REPORT.size:
            (state,) = _STATE.unpack_from(data, at)
            if state == TRANSFER and self.hello is not None:
                offset = SLAVE_REPORT.unpack_from(data, at)[1]
                if offset < 0:
                    raise RemoteProtocolError(f"a slave reports log offset {offset}")
                reports.append(offset)
                self._has_reported = True
                at += SLAVE_REPORT.size
            elif state == HANDSHAKE and not self._has_reported:
                if len(data) - at < SLAVE_HELLO.size:
                    break
                self._greet(data, at)
                at += SLAVE_HELLO.size
            else:
                raise RemoteProtocolError(f"a slave sends a frame of state {state}")
        self._rest = bytes(data[at:])
        return reports

    def _greet(self, data: bytes, at: int) -> None:
        _, from_last_file, is_learner, member = SLAVE_HELLO.unpack_from(data, at)
        hello = SlaveHello(member, from_last_file == 1, is_learner == 1)
        if member < 0 or (self.hello is not None and self.hello != hello):
            raise RemoteProtocolError(f"a slave greets as member {member}")
        self.hello = hello


class EpochFrameDecoder:
    """Reads what a master sends, from bytes that arrive in any pieces; holds one frame at most.

    Attributes:
        hello: how the master answered; None before.
    """

    __slots__ = ("_buffer", "hello")

    def __init__(self) -> None:
        self._buffer = bytearray()
        self.hello: MasterHello | None = None

    def feed(self, data: Buffer) -> list[EpochFrame]:
        """The frames that are complete now, in order.

        Raises:
            RemoteProtocolError: no master sends such a head.
        """
        buffer = self._buffer
        buffer += data
        at = 0
        if self.hello is None:
            at = self._greet()
            if not at:
                return []
        frames = []
        while len(buffer) - at >= DATA_HEAD.size:
            state, size, offset, epoch, start, confirmed = DATA_HEAD.unpack_from(buffer, at)
            nowhere = offset == -1 and not size  # RocketMQ's heartbeat before its first record
            if (
                state != TRANSFER
                or not 0 <= size <= FRAME_BYTES_MAX
                or min(epoch, start) < 0
                or (offset < 0 and not nowhere)
            ):
                raise RemoteProtocolError(
                    f"no frame of a master has state {state}, log offset {offset}, {size} bytes "
                    f"and epoch {epoch} from {start} on; at most {FRAME_BYTES_MAX} are possible"
                )
            end = at + DATA_HEAD.size + size
            if end > len(buffer):
                break
            body = bytes(buffer[at + DATA_HEAD.size : end])
            frames.append(EpochFrame(offset, body, epoch, start, max(confirmed, 0)))
            at = end
        if at:
            del buffer[:at]
        return frames

    def _greet(self) -> int:
        """Reads the greeting, if it is complete. Returns how many bytes it has."""
        head, body = bytes(self._buffer[: MASTER_HELLO.size]), MASTER_HELLO.size
        if len(head) < body:
            return 0
        end = body + MasterHello.body_bytes(head)
        if len(self._buffer) < end:
            return 0
        self.hello = MasterHello.decode(head, bytes(self._buffer[body:end]))
        return end
