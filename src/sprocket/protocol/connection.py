"""The receiving half of a connection, without the connection: bytes in, commands out.

What is kept between two reads is at most one unfinished frame, whose announced length was checked
before it is waited for. However a frame is cut, its bytes are moved a bounded number of times.
"""

from __future__ import annotations

import struct

from sprocket.base.errors import RemoteProtocolError
from sprocket.protocol.command import JSON, Buffer, Command
from sprocket.protocol.frame import FRAME_BYTES_MAX, PREFIX_BYTES, decode_header
from sprocket.protocol.header_json import decode as decode_json

#: Length of the frame; serialisation and length of the header.
_PREFIX = struct.Struct(">iI")
_LENGTH = struct.Struct(">i")
_LENGTH_BYTES = 4
_HEADER_BYTES_MASK = 0xFFFFFF

#: A body of at least so many bytes is a view of the received chunk; a shorter one is copied,
#: which is cheaper and does not keep the chunk alive.
_VIEW_BYTES_MIN = 4096


class Connection:
    """Cuts a stream of bytes into commands.

    Once the stream is no sequence of frames, the connection stays broken: what follows has no
    known beginning.
    """

    __slots__ = ("_needed", "_unfinished", "fault", "frame_bytes_max")

    def __init__(self, frame_bytes_max: int = FRAME_BYTES_MAX) -> None:
        self.frame_bytes_max = frame_bytes_max
        #: What is wrong with the stream, or None while nothing is.
        self.fault: RemoteProtocolError | None = None
        #: The beginning of a frame, and how many bytes it must have to be worth a look: the
        #: length field first, then the whole frame.
        self._unfinished = bytearray()
        self._needed = _LENGTH_BYTES

    @property
    def kept_bytes(self) -> int:
        """Bytes of an unfinished frame that wait for the rest."""
        return len(self._unfinished)

    def receive(self, data: Buffer) -> list[Command]:
        """Takes what was read and gives the commands that are complete with it.

        When the data holds good frames and then a fault, the good ones are given, `fault` is set
        at once, and the next call raises it; so the result does not depend on how the stream was
        cut. The owner closes the connection as soon as there is a fault.

        Raises:
            RemoteProtocolError: the stream is no sequence of frames.
        """
        if self.fault is not None:
            raise self.fault
        commands: list[Command] = []
        try:
            self._receive(data if type(data) is bytes else bytes(data), commands)
        except RemoteProtocolError as error:
            self.fault = error
            self._unfinished = bytearray()
            if not commands:
                raise
        return commands

    def _receive(self, data: bytes, commands: list[Command]) -> None:
        at, end = 0, len(data)
        if self._unfinished:
            at = self._complete(data, commands)
        whole_max = self.frame_bytes_max
        while end - at >= PREFIX_BYTES:
            size, word = _PREFIX.unpack_from(data, at)
            if size < _LENGTH_BYTES or size > whole_max:
                raise _no_frame(size)
            after = at + _LENGTH_BYTES + size
            if after > end:
                break
            commands.append(_decode(data, at + PREFIX_BYTES, after, word))
            at = after
        if at < end:
            self._keep(data, at)

    def _keep(self, data: bytes, at: int) -> None:
        """Keeps the beginning of a frame until the rest comes."""
        if len(data) - at >= _LENGTH_BYTES:
            (size,) = _LENGTH.unpack_from(data, at)
            if size < _LENGTH_BYTES or size > self.frame_bytes_max:
                raise _no_frame(size)
            self._needed = _LENGTH_BYTES + size
        self._unfinished += memoryview(data)[at:]

    def _complete(self, data: bytes, commands: list[Command]) -> int:
        """Adds to the unfinished frame what it lacks; how much of the data that took."""
        unfinished, at = self._unfinished, 0
        while True:
            lacking = self._needed - len(unfinished)
            unfinished += memoryview(data)[at : at + lacking]
            at = min(at + lacking, len(data))
            if len(unfinished) < self._needed:
                return at
            if self._needed > _LENGTH_BYTES:
                break
            (size,) = _LENGTH.unpack_from(unfinished)
            if size < _LENGTH_BYTES or size > self.frame_bytes_max:
                raise _no_frame(size)
            self._needed += size
        # From now on the bytes belong to the command.
        self._unfinished, self._needed = bytearray(), _LENGTH_BYTES
        _, word = _PREFIX.unpack_from(unfinished)
        commands.append(_decode(unfinished, PREFIX_BYTES, len(unfinished), word))
        return at


def _decode(data: bytes | bytearray, start: int, after: int, word: int) -> Command:
    """The frame whose header begins at `start`, and which ends before `after`.

    Args:
        word: serialisation and length of the header, as its prefix has them.
    """
    body_start = start + (word & _HEADER_BYTES_MASK)
    if body_start > after:
        raise RemoteProtocolError("a header longer than its frame")
    header = data[start:body_start]
    serialization = word >> 24
    if serialization == JSON and type(header) is bytes:
        command = decode_json(header)
    else:
        command = decode_header(bytes(header), serialization)
    body_bytes = after - body_start
    if body_bytes >= _VIEW_BYTES_MIN:
        command.body = memoryview(data).toreadonly()[body_start:after]
    elif body_bytes:
        body = data[body_start:after]
        command.body = body if type(body) is bytes else bytes(body)
    return command


def _no_frame(size: int) -> RemoteProtocolError:
    return RemoteProtocolError(f"a frame of {size} bytes")
