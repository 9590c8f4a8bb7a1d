"""One connection of HTTP/2 as a server sees it: bytes in, calls of its user, bytes out. Pure.

It promises: whatever the peer sends, it raises nothing but what its user raises; a broken frame
ends one stream or the connection, as RFC 9113 says which; what it keeps is bounded, but for what
its user queues; and frames are handled in steps, so that a peer that sends thousands at once can be
made to wait.
"""

from __future__ import annotations

from typing import Protocol

from sprocket.proxy.http2 import frames as wire
from sprocket.proxy.http2.faults import ConnectionFault, StreamFault
from sprocket.proxy.http2.field_decoder import FieldDecoder
from sprocket.proxy.http2.frame_reader import BlockReader, FrameReader, without_padding
from sprocket.proxy.http2.header_blocks import HeaderBlock
from sprocket.proxy.http2.limits import GrpcLimits
from sprocket.proxy.http2.nuisance import RESET_COST, Nuisance
from sprocket.proxy.http2.outgoing import Outgoing
from sprocket.proxy.http2.stream import Http2Stream

#: Streams that we ended and whose peer may not know it yet; more are forgotten, oldest first.
_ENDED_MAX = 1000
#: The payload of the PING whose answer shows that the peer knows of our GOAWAY.
_DRAINING = b"draining"
_ASKING = b"are you?"


class StreamUser(Protocol):
    """Who answers the streams of a connection."""

    def opened(self, stream: Http2Stream, headers: HeaderBlock) -> None:
        """A request begins. `stream.is_peer_done` says whether it has no body."""

    def received(self, stream: Http2Stream, data: bytes) -> None:
        """A part of its body, perhaps empty; `stream.is_peer_done` tells whether it is the last.

        The user calls `credit` for what it has read.
        """

    def was_reset(self, stream: Http2Stream) -> None:
        """The stream is over, before our side ended."""

    def has_room(self, stream: Http2Stream) -> None:
        """All that was queued on the stream is sent."""


class Http2Connection:
    """A connection.

    Args:
        user: answers the requests.
        limits: its limits.

    Attributes:
        streams: those that are not over, by their numbers.
        fault: why the connection is broken; its last bytes are in `outgoing`, and it reads nothing
            more.
        has_settings: whether the peer has sent its preface and its settings.
        out: what is to be sent, and how much of it; see `Outgoing`.
    """

    def __init__(self, user: StreamUser, limits: GrpcLimits) -> None:
        self._user = user
        self._limits = limits
        self._fields = FieldDecoder(limits.headers_bytes_max)
        self._blocks = BlockReader(limits.headers_bytes_max)
        self.has_settings = False
        self._last = 0
        self._last_allowed = wire.LOW_31_BITS
        self._received_bytes = 0
        self._receive_window = limits.connection_window_bytes
        self._ended: dict[int, None] = {}
        self._nuisance = Nuisance()
        self._is_announced = False
        self.fault: str | None = None
        self.streams: dict[int, Http2Stream] = {}
        self.out = Outgoing(user.has_room, self._over)
        self._reader = FrameReader(self._take)
        self._handlers = {
            wire.DATA: self._take_data,
            wire.HEADERS: self._take_headers,
            wire.PRIORITY: self._take_priority,
            wire.RST_STREAM: self._take_reset,
            wire.SETTINGS: self._take_settings,
            wire.PUSH_PROMISE: self._take_push,
            wire.PING: self._take_ping,
            wire.GOAWAY: self._take_goaway,
            wire.WINDOW_UPDATE: self._take_window,
            wire.CONTINUATION: self._take_continuation,
        }
        self.out.add(
            wire.settings_frame(
                {
                    wire.MAX_CONCURRENT_STREAMS: limits.streams_max,
                    wire.INITIAL_WINDOW_SIZE: limits.stream_window_bytes,
                    wire.MAX_HEADER_LIST_SIZE: limits.headers_bytes_max,
                }
            )
        )
        if (more := limits.connection_window_bytes - wire.WINDOW_BYTES) > 0:
            self.out.add(wire.window_update_frame(0, more))

    # Bytes in.

    @property
    def unhandled_bytes(self) -> int:
        """Received bytes that no step has handled."""
        return self._reader.unhandled_bytes

    @property
    def is_draining(self) -> bool:
        """Whether no further request is answered."""
        return self._last_allowed != wire.LOW_31_BITS

    def receive(self, data: bytes) -> None:
        """Takes bytes of the peer; `step` handles them."""
        if self.fault is None:
            self._reader.receive(data)

    def step(self, frames_max: int) -> bool:
        """Handles at most that many frames. Returns whether there may be more of them."""
        try:
            return self._reader.step(frames_max)
        except ConnectionFault as fault:
            self.end(fault.code, str(fault))
            return False

    def _take(self, kind: int, flags: int, number: int, payload: bytes) -> None:
        if self._blocks.is_unfinished and kind != wire.CONTINUATION:
            raise ConnectionFault(wire.PROTOCOL_ERROR, "a header block is broken off")
        if not self.has_settings:
            if kind != wire.SETTINGS or flags & wire.ACK:
                raise ConnectionFault(wire.PROTOCOL_ERROR, "the first frame is not SETTINGS")
            self.has_settings = True
        handler = self._handlers.get(kind)
        if handler is None:  # a kind that we do not know is ignored: RFC 9113, section 4.1
            self._count(1)
            return
        try:
            handler(flags, number, payload)
        except StreamFault as fault:
            self._count(RESET_COST)
            self.reset(number, fault.code)

    def _count(self, cost: int) -> None:
        """Counts a frame that brings no call further."""
        self._nuisance.count(cost, self.out)

    # Requests.

    def _take_headers(self, flags: int, number: int, payload: bytes) -> None:
        block = self._blocks.begin(flags, number, payload)
        if block is not None:
            self._take_block(number, flags, block)

    def _take_continuation(self, flags: int, number: int, payload: bytes) -> None:
        self._count(1 if payload else RESET_COST)
        whole = self._blocks.go_on(flags, number, payload)
        if whole is not None:
            self._take_block(number, *whole)

    def _take_block(self, number: int, flags: int, block: bytes) -> None:
        # Every block must be decoded, whatever becomes of its stream: the next ones refer to it.
        headers = self._fields.decode(block)
        is_done = bool(flags & wire.END_STREAM)
        stream = self.streams.get(number)
        if stream is not None:
            self._take_trailers(stream, headers, is_done)
            return
        if number <= self._last:
            if number in self._ended:
                return
            raise ConnectionFault(wire.STREAM_CLOSED, "HEADERS on a stream that is over")
        if number > self._last_allowed:
            return
        self._last = number
        if headers is None:
            raise StreamFault(wire.ENHANCE_YOUR_CALM, "headers of too many bytes")
        if (why := headers.fault) is not None:
            raise StreamFault(wire.PROTOCOL_ERROR, why)
        if len(self.streams) >= self._limits.streams_max:
            raise StreamFault(wire.REFUSED_STREAM, "too many streams")
        stream = Http2Stream(number, self.out.stream_window, self._limits.stream_window_bytes)
        stream.is_peer_done = is_done
        if (size := headers.fields.get("content-length")) is not None:
            is_size = size.isascii() and size.isdigit() and len(size) < 20
            stream.body_left = int(size) if is_size else -1
            self._check_body(stream, 0)
        self.streams[number] = stream
        self._user.opened(stream, headers)

    def _take_trailers(
        self, stream: Http2Stream, headers: HeaderBlock | None, is_done: bool
    ) -> None:
        if stream.is_peer_done:
            raise StreamFault(wire.STREAM_CLOSED, "HEADERS after the end of a request")
        if not is_done:
            raise StreamFault(wire.PROTOCOL_ERROR, "HEADERS in the middle of a request")
        if headers is None:
            raise StreamFault(wire.ENHANCE_YOUR_CALM, "trailers of too many bytes")
        if (why := headers.fault_in_trailers()) is not None:
            raise StreamFault(wire.PROTOCOL_ERROR, why)
        stream.is_peer_done = True
        self._check_body(stream, 0)
        self._user.received(stream, b"")

    def _take_data(self, flags: int, number: int, payload: bytes) -> None:
        size = len(payload)
        if number == 0:
            raise ConnectionFault(wire.PROTOCOL_ERROR, "DATA on the connection")
        # All of a frame counts, with its padding: RFC 9113, section 6.9.1.
        self._received_bytes += size
        if self._received_bytes > self._receive_window:
            raise ConnectionFault(wire.FLOW_CONTROL_ERROR, "more DATA than the connection may have")
        if self._received_bytes * 2 > self._receive_window:
            self.out.add(wire.window_update_frame(0, self._received_bytes))
            self._received_bytes = 0
        if flags & wire.PADDED:
            payload = without_padding(payload)
        stream = self.streams.get(number)
        if stream is None or stream.is_peer_done:
            self._data_of_no_stream(number)
            return
        stream.receive_window -= size
        if stream.receive_window < 0:
            raise StreamFault(wire.FLOW_CONTROL_ERROR, "more DATA than the stream may have")
        stream.received_bytes += size - len(payload)
        stream.is_peer_done = bool(flags & wire.END_STREAM)
        if not payload and not stream.is_peer_done:
            self._count(1)
        if stream.body_left is not None:
            self._check_body(stream, len(payload))
        self._user.received(stream, payload)

    def _check_body(self, stream: Http2Stream, size: int) -> None:
        if stream.body_left is None:
            return
        stream.body_left -= size
        if stream.body_left < 0 or (stream.is_peer_done and stream.body_left):
            raise StreamFault(wire.PROTOCOL_ERROR, "content-length is not that of the body")

    def _data_of_no_stream(self, number: int) -> None:
        if number > self._last:
            if number > self._last_allowed:
                return
            raise ConnectionFault(wire.PROTOCOL_ERROR, "DATA on a stream that was never opened")
        self._count(1)
        if number not in self._ended:
            raise StreamFault(wire.STREAM_CLOSED, "DATA on a stream that is over")

    def credit(self, stream: Http2Stream, size: int) -> None:
        """Lets the peer send that many bytes more on a stream: its user has read them."""
        stream.received_bytes += size
        limit = self._limits.stream_window_bytes
        if stream.received_bytes * 2 > limit and not stream.is_peer_done:
            self.out.add(wire.window_update_frame(stream.number, stream.received_bytes))
            stream.receive_window += stream.received_bytes
            stream.received_bytes = 0

    # The other frames.

    def _take_priority(self, _flags: int, number: int, payload: bytes) -> None:
        self._count(1)
        if number == 0:
            raise ConnectionFault(wire.PROTOCOL_ERROR, "PRIORITY of the connection")
        if len(payload) != 5:
            raise StreamFault(wire.FRAME_SIZE_ERROR, "PRIORITY has 5 bytes")
        if wire.number_in(payload) & wire.LOW_31_BITS == number:
            raise StreamFault(wire.PROTOCOL_ERROR, "a stream that depends on itself")

    def _take_reset(self, _flags: int, number: int, payload: bytes) -> None:
        self._check_number(number, "RST_STREAM")
        _check_size(payload, 4, "RST_STREAM")
        stream = self.streams.pop(number, None)
        self._count(RESET_COST if stream is not None else 1)
        if stream is not None:
            self.out.forget(stream)
            self._user.was_reset(stream)

    def _take_settings(self, flags: int, number: int, payload: bytes) -> None:
        self._count(1)
        if number:
            raise ConnectionFault(wire.PROTOCOL_ERROR, "SETTINGS of a stream")
        if flags & wire.ACK:
            _check_size(payload, 0, "the answer to SETTINGS")
            return
        if len(payload) % 6:
            raise ConnectionFault(wire.FRAME_SIZE_ERROR, "SETTINGS of a broken length")
        self.out.apply_settings(wire.settings_in(payload), self.streams.values())
        self.out.add(wire.SETTINGS_ACK)

    def _take_push(self, _flags: int, _number: int, _payload: bytes) -> None:
        raise ConnectionFault(wire.PROTOCOL_ERROR, "a client must not push")

    def _take_ping(self, flags: int, number: int, payload: bytes) -> None:
        if number:
            raise ConnectionFault(wire.PROTOCOL_ERROR, "PING of a stream")
        _check_size(payload, 8, "PING")
        self._count(1)
        if not flags & wire.ACK:
            self.out.add(wire.frame(wire.PING, wire.ACK, 0, payload))
        elif self._is_announced and payload == _DRAINING:
            self._announce_last()

    def _take_goaway(self, _flags: int, number: int, payload: bytes) -> None:
        self._count(1)
        if number:
            raise ConnectionFault(wire.PROTOCOL_ERROR, "GOAWAY of a stream")
        if len(payload) < 8:
            raise ConnectionFault(wire.FRAME_SIZE_ERROR, "GOAWAY has 8 bytes or more")

    def _take_window(self, _flags: int, number: int, payload: bytes) -> None:
        _check_size(payload, 4, "WINDOW_UPDATE")
        self._count(1)
        more = wire.number_in(payload) & wire.LOW_31_BITS
        if number == 0:
            if not more:
                raise ConnectionFault(wire.PROTOCOL_ERROR, "WINDOW_UPDATE of nothing")
            if self.out.window + more > wire.WINDOW_BYTES_MAX:
                raise ConnectionFault(wire.FLOW_CONTROL_ERROR, "a window of 2 GiB or more")
            self.out.window += more
            return
        self._check_number(number, "WINDOW_UPDATE")
        stream = self.streams.get(number)
        if stream is None:
            return
        if not more:
            raise StreamFault(wire.PROTOCOL_ERROR, "WINDOW_UPDATE of nothing")
        if stream.send_window + more > wire.WINDOW_BYTES_MAX:
            raise StreamFault(wire.FLOW_CONTROL_ERROR, "a window of 2 GiB or more")
        self.out.widen(stream, more)

    def _check_number(self, number: int, kind: str) -> None:
        if number == 0 or number > self._last:
            raise ConnectionFault(wire.PROTOCOL_ERROR, f"{kind} on a stream that was never opened")

    # Our side.

    def reset(self, number: int, code: int) -> None:
        """Ends a stream at once, and tells its user."""
        stream = self.streams.pop(number, None)
        self._ended_by_us(number)
        self.out.add(wire.reset_frame(number, code))
        if stream is not None:
            self.out.forget(stream)
            self._user.was_reset(stream)

    def _over(self, stream: Http2Stream) -> None:
        """Our side of a stream has ended; that of the peer ends with it."""
        if self.streams.pop(stream.number, None) is not None and not stream.is_peer_done:
            self._ended_by_us(stream.number)
            self.out.add(wire.reset_frame(stream.number, wire.NO_ERROR))

    def _ended_by_us(self, number: int) -> None:
        self._ended[number] = None
        if len(self._ended) > _ENDED_MAX:
            del self._ended[next(iter(self._ended))]

    def end(self, code: int, why: str) -> None:
        """Ends the connection: nothing more is read, and the peer is told why."""
        if self.fault is None:
            self.fault = why
            self._reader.stop()
            self._blocks.forget()
            self.out.add(wire.goaway_frame(self._last, code, why))

    def calm(self) -> None:
        """Forgets the frames that brought nothing; its user calls this from time to time."""
        self._nuisance.cost = 0

    def ask(self) -> None:
        """Asks the peer for a sign of life."""
        self.out.add(wire.frame(wire.PING, 0, 0, _ASKING))

    def drain(self) -> None:
        """Announces that further requests are not answered soon; those on their way still are."""
        if not self._is_announced:
            self._is_announced = True
            self.out.add(wire.goaway_frame(wire.LOW_31_BITS, wire.NO_ERROR, ""))
            self.out.add(wire.frame(wire.PING, 0, 0, _DRAINING))

    def _announce_last(self) -> None:
        """The peer knows that we drain: what it opens from now on is not answered."""
        if not self.is_draining:
            self._last_allowed = self._last
            self.out.add(wire.goaway_frame(self._last, wire.NO_ERROR, ""))


def _check_size(payload: bytes, size: int, kind: str) -> None:
    if len(payload) != size:
        raise ConnectionFault(wire.FRAME_SIZE_ERROR, f"{kind} has {size} bytes")
