"""What one connection sends: frames in their order, and DATA as the peer's windows allow. Pure.

Streams with much to send take turns, a frame each, so that a long reply holds no short one up; one
whose window is used up waits and holds only itself.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from sprocket.proxy.http2 import frames as wire
from sprocket.proxy.http2.faults import ConnectionFault
from sprocket.proxy.http2.header_blocks import NO_TABLE
from sprocket.proxy.http2.stream import Buffer, Http2Stream

#: The longest frame of ours, whatever the peer takes: more would let one stream hold others up.
_FRAME_BYTES_MAX = 1 << 16
_END = wire.END_HEADERS | wire.END_STREAM


class Outgoing:
    """The sending side.

    Args:
        on_empty: is called with a stream whose queue became empty.
        on_end: is called with a stream whose trailers are sent.

    Attributes:
        frames: what is to be written next.
        queued_bytes: data of all streams that no frame has yet.
        reply_frames: how many frames of data and ends of replies were sent; its user may set it
            back.
        window: how many bytes of DATA the peer still takes on the connection.
        stream_window: the same for a new stream.
    """

    def __init__(
        self, on_empty: Callable[[Http2Stream], None], on_end: Callable[[Http2Stream], None]
    ) -> None:
        self._on_empty = on_empty
        self._on_end = on_end
        self._frame_bytes = wire.FRAME_BYTES
        #: Streams with data that their windows let through, in the order of their turns.
        self._sending: dict[int, Http2Stream] = {}
        self._first_prefix = NO_TABLE
        self.frames: list[Buffer] = []
        self.queued_bytes = 0
        self.reply_frames = 0
        self.window = wire.WINDOW_BYTES
        self.stream_window = wire.WINDOW_BYTES

    @property
    def has_data(self) -> bool:
        """Whether a stream has data that the peer takes."""
        return bool(self._sending) and self.window > 0

    def add(self, frame: Buffer) -> None:
        """Sends a whole frame."""
        self.frames.append(frame)

    def send_headers(self, stream: Http2Stream, block: bytes) -> None:
        """Begins a reply."""
        block, self._first_prefix = self._first_prefix + block, b""
        self.frames.append(wire.frame(wire.HEADERS, wire.END_HEADERS, stream.number, block))

    def send_data(self, stream: Http2Stream, *data: Buffer) -> None:
        """Queues data of a stream."""
        stream.queue += data
        size = sum(map(len, data))
        stream.queued_bytes += size
        self.queued_bytes += size
        if stream.send_window > 0:
            self._sending[stream.number] = stream

    def send_end(self, stream: Http2Stream, block: bytes) -> None:
        """Ends our side after what is queued, with trailers."""
        stream.trailers = block
        if not stream.queued_bytes:
            self._end(stream)

    def reply(self, stream: Http2Stream, head: bytes, data: bytes, trailers: bytes) -> None:
        """Sends a whole reply."""
        size, number = len(data), stream.number
        if (
            size > stream.send_window
            or size > self.window
            or size > self._frame_bytes
            or (self._first_prefix or self._sending)
        ):
            self.send_headers(stream, head)
            self.send_data(stream, data)
            self.send_end(stream, trailers)
            return
        self.window -= size
        pack = wire.HEAD.pack
        self.frames += (
            pack(0, len(head), wire.HEADERS, wire.END_HEADERS, number), head,
            pack(size >> 8, size & 0xFF, wire.DATA, 0, number), data,
            pack(0, len(trailers), wire.HEADERS, _END, number), trailers,
        )  # fmt: skip
        self.reply_frames += 1
        self._on_end(stream)

    def pump(self, bytes_max: int) -> None:
        """Makes frames of queued data, up to about that many bytes."""
        sending = self._sending
        while sending and self.window > 0 and bytes_max > 0:
            number = next(iter(sending))
            stream = sending.pop(number)
            size = min(stream.queued_bytes, stream.send_window, self.window, self._frame_bytes)
            self.frames.append(wire.HEAD.pack(size >> 8, size & 0xFF, wire.DATA, 0, number))
            self.frames += stream.take(size)
            self.window -= size
            stream.send_window -= size
            bytes_max -= size
            self.queued_bytes -= size
            self.reply_frames += 1
            if stream.queued_bytes:
                if stream.send_window > 0:
                    sending[number] = stream
            elif stream.trailers is not None:
                self._end(stream)
            else:
                self._on_empty(stream)

    def widen(self, stream: Http2Stream, more: int) -> None:
        """The peer takes more data of a stream."""
        stream.send_window += more
        if stream.queued_bytes and stream.send_window > 0:
            self._sending[stream.number] = stream

    def apply_settings(
        self, settings: Iterable[tuple[int, int]], streams: Collection[Http2Stream]
    ) -> None:
        """The peer changes its settings: RFC 9113, section 6.5.2.

        Raises:
            ConnectionFault: one is out of its bounds.
        """
        for name, value in settings:
            if name == wire.INITIAL_WINDOW_SIZE:
                self._change_windows(value, streams)
            elif name == wire.MAX_FRAME_SIZE:
                if not wire.FRAME_BYTES <= value <= wire.FRAME_BYTES_MAX:
                    raise ConnectionFault(wire.PROTOCOL_ERROR, "MAX_FRAME_SIZE out of its bounds")
                self._frame_bytes = min(value, _FRAME_BYTES_MAX)
            elif name == wire.ENABLE_PUSH and value > 1:
                raise ConnectionFault(wire.PROTOCOL_ERROR, "ENABLE_PUSH is neither 0 nor 1")

    def _change_windows(self, value: int, streams: Iterable[Http2Stream]) -> None:
        """All streams get the new window, less what is used of it: RFC 9113, section 6.9.2."""
        change, self.stream_window = value - self.stream_window, value
        highest = value
        for stream in streams:
            self.widen(stream, change)
            highest = max(highest, stream.send_window)
            if stream.send_window <= 0:
                self._sending.pop(stream.number, None)
        if highest > wire.WINDOW_BYTES_MAX:
            raise ConnectionFault(wire.FLOW_CONTROL_ERROR, "a window of 2 GiB or more")

    def forget(self, stream: Http2Stream) -> None:
        """Drops what a stream has queued."""
        self._sending.pop(stream.number, None)
        stream.queue.clear()
        self.queued_bytes -= stream.queued_bytes
        stream.queued_bytes = 0

    def _end(self, stream: Http2Stream) -> None:
        block, self._first_prefix = self._first_prefix + (stream.trailers or b""), b""
        self.frames.append(wire.frame(wire.HEADERS, _END, stream.number, block))
        self.reply_frames += 1
        self._on_end(stream)
