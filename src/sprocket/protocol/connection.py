"""The receiving half of a connection without I/O: it takes bytes and returns commands.

Between two reads it keeps at most one incomplete frame, and waits for one only after checking its
length field. However a frame is cut, its bytes are copied a bounded number of times.
"""

from __future__ import annotations

import struct

from sprocket.base.errors import RemoteProtocolError
from sprocket.protocol.command import HEADER_BYTES_MAX, JSON, Buffer, Command
from sprocket.protocol.frame import FRAME_BYTES_MAX, PREFIX_BYTES, decode_header
from sprocket.protocol.header_json import decode as decode_json

#: The frame's length; then the header's serialisation and length in one word.
_PREFIX = struct.Struct(">iI")
_LENGTH = struct.Struct(">i")
_LENGTH_BYTES = 4
_HEADER_BYTES_MASK = 0xFFFFFF

#: A body of at least this many bytes is a view of the received chunk. A shorter one is copied,
#: which is cheaper and does not keep the chunk alive.
_VIEW_BYTES_MIN = 4096


class Connection:
    """Cuts a stream of bytes into commands.

    After a byte sequence that is no frame, the connection stays broken: nothing shows where the
    next frame begins.
    """

    __slots__ = ("_needed", "_unfinished", "fault", "frame_bytes_max")

    def __init__(self, frame_bytes_max: int = FRAME_BYTES_MAX) -> None:
        self.frame_bytes_max = frame_bytes_max
        #: The error in the stream, or None while there is none.
        self.fault: RemoteProtocolError | None = None
        #: The beginning of a frame, and the number of bytes needed for the next step: first the
        #: length field, then the whole frame.
        self._unfinished = bytearray()
        self._needed = _LENGTH_BYTES

    @property
    def kept_bytes(self) -> int:
        """The number of kept bytes of an incomplete frame."""
        return len(self._unfinished)

    def receive(self, data: Buffer) -> list[Command]:
        """Takes received bytes and returns the commands that are complete now.

        If the data contains good frames and then a fault, the good ones are returned, `fault` is
        set at once, and the next call raises it; so the result does not depend on how the stream
        was cut. The owner must close the connection as soon as there is a fault.

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

    def with_kept(self, data: bytes) -> bytes:
        """Received bytes behind those that are kept, which are kept no more; only the received
        ones if these do not complete a short frame."""
        kept = len(self._unfinished)
        if not kept:
            return data
        if not _LENGTH_BYTES < self._needed <= min(kept + len(data), _VIEW_BYTES_MIN):
            return data
        data = bytes(self._unfinished) + data
        self._unfinished, self._needed = bytearray(), _LENGTH_BYTES
        return data

    def _receive(self, data: bytes, commands: list[Command]) -> None:
        # One read under load holds many whole frames. They are decoded where they are, in the
        # received bytes; only the tail of the read is ever copied into the buffer of an incomplete
        # frame. The length is checked first, so no peer can make us wait for a giant frame.
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
        """Keeps the beginning of a frame until the rest arrives."""
        if len(data) - at >= _LENGTH_BYTES:
            (size,) = _LENGTH.unpack_from(data, at)
            if size < _LENGTH_BYTES or size > self.frame_bytes_max:
                raise _no_frame(size)
            self._needed = _LENGTH_BYTES + size
        self._unfinished += memoryview(data)[at:]

    def _complete(self, data: bytes, commands: list[Command]) -> int:
        """Adds the missing bytes to the incomplete frame.

        Returns:
            The number of bytes of `data` that were used.
        """
        # At most two rounds: one for the length field, which may be cut too, and one for the rest.
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
        # The command may hold a view of these bytes, so the next frame gets a new buffer.
        self._unfinished, self._needed = bytearray(), _LENGTH_BYTES
        _, word = _PREFIX.unpack_from(unfinished)
        commands.append(_decode(unfinished, PREFIX_BYTES, len(unfinished), word))
        return at


def _decode(data: bytes | bytearray, start: int, after: int, word: int) -> Command:
    """Decodes the frame whose header begins at `start` and whose last byte is before `after`.

    Args:
        word: the header's serialisation and length, as in the prefix.
    """
    # The usual case, a JSON header in a whole read, skips the dispatch of `decode_header`.
    body_start = start + (word & _HEADER_BYTES_MASK)
    if body_start > after:
        raise RemoteProtocolError("a header longer than its frame")
    if body_start - start > HEADER_BYTES_MAX:
        raise RemoteProtocolError(
            f"a header of {body_start - start} bytes; it has at most {HEADER_BYTES_MAX}"
        )
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
