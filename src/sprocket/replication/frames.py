"""The frames of a replication connection, both ways; all numbers are big-endian. Pure.

A slave sends reports, 8 bytes each: the log offset up to which it has the log. A master sends
frames: the log offset of some bytes, their number, and these bytes of its log as they are in its
files. A frame of 0 bytes is a heartbeat; its offset is where the next bytes begin. There is nothing
else: no greeting, no name, no checksum. `docs/formats/replication.md` has the tables.

Source: DefaultHAConnection and DefaultHAClient of RocketMQ 4.9 and 5.x.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from sprocket.base.errors import RemoteProtocolError

REPORT = struct.Struct(">q")
HEAD = struct.Struct(">qi")

#: The most bytes that a frame may carry. A slave of RocketMQ has a buffer of 4 MiB for a frame.
FRAME_BYTES_MAX = 4 << 20

Buffer = bytes | bytearray | memoryview


class Frame(NamedTuple):
    """Some bytes of a log.

    Attributes:
        offset: log offset of the first of them; where the next ones begin, if there are none.
        data: the bytes; none in a heartbeat.
    """

    offset: int
    data: bytes


class ReportDecoder:
    """Reads reports from bytes that arrive in any pieces.

    Attributes:
        hello: always None: slaves do not greet here.
    """

    __slots__ = ("_rest", "hello")

    def __init__(self) -> None:
        self._rest = b""
        self.hello = None

    def feed(self, data: Buffer) -> list[int]:
        """The reports that are complete now, in order.

        Raises:
            RemoteProtocolError: one is negative.
        """
        data = self._rest + data
        whole = len(data) - len(data) % REPORT.size
        self._rest = data[whole:]
        reports = [number for (number,) in REPORT.iter_unpack(data[:whole])]
        if reports and min(reports) < 0:
            raise RemoteProtocolError(f"a slave reports log offset {min(reports)}")
        return reports


class FrameDecoder:
    """Reads frames from bytes that arrive in any pieces; holds one frame's bytes at most."""

    __slots__ = ("_buffer",)

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: Buffer) -> list[Frame]:
        """The frames that are complete now, in order.

        Raises:
            RemoteProtocolError: a head has a negative offset, or a size that no frame has.
        """
        buffer = self._buffer
        buffer += data
        frames = []
        at = 0
        while len(buffer) - at >= HEAD.size:
            offset, size = HEAD.unpack_from(buffer, at)
            if offset < 0 or not 0 <= size <= FRAME_BYTES_MAX:
                raise RemoteProtocolError(
                    f"no frame of a master begins with log offset {offset} and {size} bytes; "
                    f"at most {FRAME_BYTES_MAX} are possible"
                )
            end = at + HEAD.size + size
            if end > len(buffer):
                break
            frames.append(Frame(offset, bytes(buffer[at + HEAD.size : end])))
            at = end
        if at:
            del buffer[:at]
        return frames
