"""Cuts a client's bytes into frames, and joins its header blocks. Pure."""

from __future__ import annotations

from collections.abc import Callable

from sprocket.proxy.http2 import frames as wire
from sprocket.proxy.http2.faults import ConnectionFault

#: How TLS begins, and what that means here.
_HANDSHAKE = b"\x16\x03"
_TLS_HERE = "it speaks TLS, and this server does not (tls.mode, tls.certificate)"
#: Takes a frame: its kind, flags, stream and payload.
FrameUser = Callable[[int, int, int, bytes], None]


class FrameReader:
    """The frames of one client, after its preface.

    Args:
        take: is called with each frame.
    """

    def __init__(self, take: FrameUser) -> None:
        self._take = take
        self._data = b""
        self._at = 0
        self._has_preface = False
        self._is_stopped = False

    @property
    def unhandled_bytes(self) -> int:
        """Received bytes that no step has handled."""
        return len(self._data) - self._at

    def receive(self, data: bytes) -> None:
        """Takes bytes; `step` handles them."""
        self._data = self._data[self._at :] + data if self._at < len(self._data) else data
        self._at = 0

    def stop(self) -> None:
        """Forgets the rest."""
        self._data, self._at, self._is_stopped = b"", 0, True

    def step(self, frames_max: int) -> bool:
        """Handles at most that many frames. Returns whether there may be more of them.

        Raises:
            ConnectionFault: it is no HTTP/2, or a frame is too long.
        """
        if not self._has_preface and not self._take_preface():
            return False
        data, at, take = self._data, self._at, self._take
        size, unpack, head_bytes = len(data), wire.HEAD.unpack_from, wire.HEAD_BYTES
        while frames_max and size - at >= head_bytes:
            high, low, kind, flags, number = unpack(data, at)
            length = high << 8 | low
            if length > wire.FRAME_BYTES:
                raise ConnectionFault(
                    wire.FRAME_SIZE_ERROR,
                    f"a frame of {length} bytes; {wire.FRAME_BYTES} are allowed",
                )
            begin = at + head_bytes
            if begin + length > size:
                break
            self._at = at = begin + length
            take(kind, flags, number & wire.LOW_31_BITS, data[begin:at])
            if self._is_stopped:
                return False
            frames_max -= 1
        return not frames_max and at < size

    def _take_preface(self) -> bool:
        got = self._data[: len(wire.PREFACE)]
        if not wire.PREFACE.startswith(got):
            why = _TLS_HERE if got.startswith(_HANDSHAKE) else "it does not speak HTTP/2"
            raise ConnectionFault(wire.PROTOCOL_ERROR, why)
        if len(got) == len(wire.PREFACE):
            self._at = len(got)
            self._has_preface = True
        return self._has_preface


class BlockReader:
    """The header blocks of one client, each in HEADERS and perhaps CONTINUATION frames.

    Args:
        bytes_max: the longest block.

    Attributes:
        is_unfinished: whether a block goes on.
    """

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._number = 0
        self._flags = 0
        self.is_unfinished = False
        self._kept = bytearray()

    def begin(self, flags: int, number: int, payload: bytes) -> bytes | None:
        """The block of a HEADERS frame; None if it goes on.

        Raises:
            ConnectionFault: the frame is broken.
        """
        if not number & 1:
            raise ConnectionFault(wire.PROTOCOL_ERROR, "HEADERS on a stream that is no client's")
        if flags & wire.PADDED:
            payload = without_padding(payload)
        if flags & wire.WITH_PRIORITY:
            if len(payload) < wire.PRIORITY_BYTES:
                raise ConnectionFault(wire.FRAME_SIZE_ERROR, "HEADERS without their priority")
            if wire.number_in(payload) & wire.LOW_31_BITS == number:
                raise ConnectionFault(wire.PROTOCOL_ERROR, "a stream that depends on itself")
            payload = payload[wire.PRIORITY_BYTES :]
        if flags & wire.END_HEADERS:
            return payload
        self.is_unfinished, self._number, self._flags = True, number, flags
        self._keep(payload)
        return None

    def go_on(self, flags: int, number: int, payload: bytes) -> tuple[int, bytes] | None:
        """The flags of the HEADERS frame and its whole block; None if it goes on.

        Raises:
            ConnectionFault: no block goes on, or it is too long.
        """
        if not self.is_unfinished or self._number != number:
            raise ConnectionFault(wire.PROTOCOL_ERROR, "CONTINUATION of no header block")
        self._keep(payload)
        if not flags & wire.END_HEADERS:
            return None
        block = bytes(self._kept)
        self.forget()
        return self._flags, block

    def forget(self) -> None:
        """Forgets the block that goes on."""
        self.is_unfinished, self._kept = False, bytearray()

    def _keep(self, payload: bytes) -> None:
        self._kept += payload
        if len(self._kept) > self._bytes_max:
            raise ConnectionFault(wire.ENHANCE_YOUR_CALM, "a header block has too many bytes")


def without_padding(payload: bytes) -> bytes:
    """The payload of a frame with padding.

    Raises:
        ConnectionFault: the padding is longer than the frame.
    """
    if not payload or payload[0] >= len(payload):
        raise ConnectionFault(wire.PROTOCOL_ERROR, "a frame with more padding than bytes")
    return payload[1 : len(payload) - payload[0]]
