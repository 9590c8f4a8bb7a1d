"""A connection as a state machine: what RFC 9113 wants, floods, and bytes cut anywhere."""

from __future__ import annotations

import asyncio
import shutil

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sprocket.proxy.http2 import frames as wire
from sprocket.proxy.http2.limits import GrpcLimits
from sprocket.proxy.http2.nuisance import COST_MAX, RESET_COST
from tests.proxy.http2.kit import (
    HELLO,
    Recorder,
    codes_in,
    frames_in,
    headers_frame,
    request_headers,
)
from tests.support import run

H2SPEC = shutil.which("h2spec")
PING = wire.frame(wire.PING, 0, 0, b"12345678")
END = wire.END_HEADERS | wire.END_STREAM


def data(number: int, payload: bytes, flags: int = 0) -> bytes:
    return wire.frame(wire.DATA, flags, number, payload)


def setting(name: int, value: int) -> bytes:
    return wire.settings_frame({name: value})


def number_bytes(value: int) -> bytes:
    return value.to_bytes(4, "big")


def window_update(number: int, more: int) -> bytes:
    return wire.frame(wire.WINDOW_UPDATE, 0, number, number_bytes(more))


def reset(number: int) -> bytes:
    return wire.frame(wire.RST_STREAM, 0, number, number_bytes(wire.CANCEL))


def test_a_request_is_answered_and_its_stream_is_over() -> None:
    user = Recorder()
    sent = user.feed(HELLO + headers_frame(1) + data(1, b"hello", wire.END_STREAM))
    assert user.seen[-1] == ("done", 1, b"hello")
    kinds = [(kind, flags) for kind, flags, number, _ in frames_in(sent) if number == 1]
    assert kinds == [(wire.HEADERS, wire.END_HEADERS), (wire.DATA, 0), (wire.HEADERS, END)]
    assert not user.http.streams


#: What a client sends after its greeting, and what it is told.
WRONG = {
    "no settings first": (wire.PREFACE + PING, ("goaway", 0, wire.PROTOCOL_ERROR)),
    "HTTP/1": (b"GET / HTTP/1.1\r\n\r\n", ("goaway", 0, wire.PROTOCOL_ERROR)),
    "a frame too long": (
        HELLO + wire.HEAD.pack(0x40, 1, wire.DATA, 0, 1), ("goaway", 0, wire.FRAME_SIZE_ERROR),
    ),
    "an even stream": (HELLO + headers_frame(2), ("goaway", 0, wire.PROTOCOL_ERROR)),
    "headers on no stream": (HELLO + headers_frame(0), ("goaway", 0, wire.PROTOCOL_ERROR)),
    "a stream that goes back": (
        HELLO + headers_frame(5, flags=END) + headers_frame(3, flags=END),
        ("goaway", 5, wire.STREAM_CLOSED),
    ),
    "a ping in a header block": (
        HELLO + headers_frame(1, flags=0) + PING, ("goaway", 0, wire.PROTOCOL_ERROR),
    ),
    "a continuation of another stream": (
        HELLO + headers_frame(1, flags=0) + wire.frame(wire.CONTINUATION, 4, 3, b""),
        ("goaway", 0, wire.PROTOCOL_ERROR),
    ),
    "a continuation of nothing": (
        HELLO + wire.frame(wire.CONTINUATION, 4, 1, b""), ("goaway", 0, wire.PROTOCOL_ERROR),
    ),
    "a broken header block": (
        HELLO + wire.frame(wire.HEADERS, 5, 1, b"\xff\xff\xff\xff\xff\xff"),
        ("goaway", 0, wire.COMPRESSION_ERROR),
    ),
    "a padding longer than its frame": (
        HELLO + headers_frame(1) + data(1, b"\x05abc", wire.PADDED),
        ("goaway", 1, wire.PROTOCOL_ERROR),
    ),
    "data on a stream never opened": (HELLO + data(1, b""), ("goaway", 0, wire.PROTOCOL_ERROR)),
    "data on the connection": (HELLO + data(0, b""), ("goaway", 0, wire.PROTOCOL_ERROR)),
    "a reset of a stream never opened": (HELLO + reset(1), ("goaway", 0, wire.PROTOCOL_ERROR)),
    "a push": (HELLO + wire.frame(wire.PUSH_PROMISE, 4, 1, b"1234"), ("goaway", 0, 1)),
    "a ping of 7 bytes": (
        HELLO + wire.frame(wire.PING, 0, 0, b"1234567"), ("goaway", 0, wire.FRAME_SIZE_ERROR),
    ),
    "settings of 5 bytes": (
        HELLO + wire.frame(wire.SETTINGS, 0, 0, b"12345"), ("goaway", 0, wire.FRAME_SIZE_ERROR),
    ),
    "an acknowledgement with settings": (
        HELLO + wire.frame(wire.SETTINGS, 1, 0, b"123456"), ("goaway", 0, wire.FRAME_SIZE_ERROR),
    ),
    "settings of a stream": (
        HELLO + wire.frame(wire.SETTINGS, 0, 1, b""), ("goaway", 0, wire.PROTOCOL_ERROR),
    ),
    "push neither on nor off": (
        HELLO + setting(wire.ENABLE_PUSH, 2), ("goaway", 0, wire.PROTOCOL_ERROR),
    ),
    "a window of 2 GiB": (
        HELLO + setting(wire.INITIAL_WINDOW_SIZE, 1 << 31), ("goaway", 0, wire.FLOW_CONTROL_ERROR),
    ),
    "frames too short": (
        HELLO + setting(wire.MAX_FRAME_SIZE, 16_383), ("goaway", 0, wire.PROTOCOL_ERROR),
    ),
    "a connection window of 2 GiB": (
        HELLO + window_update(0, (1 << 31) - 1), ("goaway", 0, wire.FLOW_CONTROL_ERROR),
    ),
    "a connection window of nothing more": (
        HELLO + window_update(0, 0), ("goaway", 0, wire.PROTOCOL_ERROR),
    ),
    "a goaway of 4 bytes": (
        HELLO + wire.frame(wire.GOAWAY, 0, 0, b"1234"), ("goaway", 0, wire.FRAME_SIZE_ERROR),
    ),
    "a stream window of 2 GiB": (
        HELLO + headers_frame(1) + window_update(1, (1 << 31) - 1),
        ("reset", 1, wire.FLOW_CONTROL_ERROR),
    ),
    "a stream window that settings make 2 GiB": (
        HELLO + headers_frame(1) + window_update(1, (1 << 31) - 65_536)
        + setting(wire.INITIAL_WINDOW_SIZE, 65_536),
        ("goaway", 1, wire.FLOW_CONTROL_ERROR),
    ),
    "a stream window of nothing more": (
        HELLO + headers_frame(1) + window_update(1, 0), ("reset", 1, wire.PROTOCOL_ERROR),
    ),
    "data after the end": (
        HELLO + headers_frame(1, flags=END) + data(1, b"x"), ("reset", 1, wire.STREAM_CLOSED),
    ),
    "headers in the middle": (
        HELLO + headers_frame(1) + headers_frame(1), ("reset", 1, wire.PROTOCOL_ERROR),
    ),
    "trailers with a pseudo-header": (
        HELLO + headers_frame(1) + headers_frame(1, flags=END), ("reset", 1, wire.PROTOCOL_ERROR),
    ),
    "a body longer than its content-length": (
        HELLO + headers_frame(1, request_headers(content_length="1")) + data(1, b"xy"),
        ("reset", 1, wire.PROTOCOL_ERROR),
    ),
    "a body shorter than its content-length": (
        HELLO + headers_frame(1, request_headers(content_length="3"))
        + data(1, b"xy", wire.END_STREAM),
        ("reset", 1, wire.PROTOCOL_ERROR),
    ),
    "a header of HTTP/1": (
        HELLO + headers_frame(1, request_headers(connection="close")),
        ("reset", 1, wire.PROTOCOL_ERROR),
    ),
    "no path": (HELLO + headers_frame(1, [(":method", "POST"), (":scheme", "x")]), ("reset", 1, 1)),
    "a priority of 4 bytes": (
        HELLO + headers_frame(1) + wire.frame(wire.PRIORITY, 0, 1, b"1234"),
        ("reset", 1, wire.FRAME_SIZE_ERROR),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_ends_the_stream_or_the_connection(name: str) -> None:
    sent, told = WRONG[name]
    user = Recorder()
    assert told in codes_in(user.feed(sent))
    assert (user.http.fault is not None) == (told[0] == "goaway")


def test_a_connection_that_is_over_takes_nothing_more() -> None:
    user = Recorder()
    user.feed(HELLO + headers_frame(2))
    assert user.feed(headers_frame(1, flags=END) + PING) == b""
    assert not user.seen


def test_frames_of_unknown_kinds_and_priorities_are_ignored() -> None:
    user = Recorder()
    priority = wire.frame(wire.PRIORITY, 0, 7, number_bytes(0) + b"\x10")
    unknown = wire.frame(0xEE, 0xFF, 9, b"what?")
    padded = b"\x03" + number_bytes(0) + b"\x10" + headers_frame(1)[9:] + b"\0\0\0"
    first = wire.frame(wire.HEADERS, wire.END_HEADERS | wire.PADDED | wire.WITH_PRIORITY, 1, padded)
    user.feed(HELLO + priority + unknown + first + data(1, b"\x02ab\0\0", 0x09))
    assert user.seen[-1] == ("done", 1, b"ab")


def test_a_block_in_many_frames_is_one() -> None:
    user = Recorder()
    whole = headers_frame(1)[9:]
    parts = [whole[at : at + 7] for at in range(0, len(whole), 7)]
    sent = wire.frame(wire.HEADERS, wire.END_STREAM, 1, parts[0])
    sent += b"".join(wire.frame(wire.CONTINUATION, 0, 1, part) for part in parts[1:-1])
    user.feed(HELLO + sent + wire.frame(wire.CONTINUATION, wire.END_HEADERS, 1, parts[-1]))
    assert user.seen[0] == ("opened", 1, tuple(request_headers()))


def test_a_ping_gets_its_bytes_back() -> None:
    user = Recorder()
    user.feed(HELLO)
    assert frames_in(user.feed(PING)) == [(wire.PING, wire.ACK, 0, b"12345678")]


def test_streams_above_the_limit_are_refused_and_the_others_stay() -> None:
    user = Recorder(GrpcLimits(streams_max=2))
    told = codes_in(user.feed(HELLO + b"".join(headers_frame(n) for n in (1, 3, 5))))
    assert told == [("reset", 5, wire.REFUSED_STREAM)]
    user.feed(data(1, b"a", wire.END_STREAM))
    assert ("done", 1, b"a") in user.seen


def test_data_on_a_stream_that_was_refused_is_ignored() -> None:
    user = Recorder(GrpcLimits(streams_max=1))
    user.feed(HELLO + headers_frame(1) + headers_frame(3))
    assert codes_in(user.feed(data(3, b"abc") + data(1, b"a", wire.END_STREAM))) == []
    assert ("done", 1, b"a") in user.seen


def test_a_reply_before_the_end_of_a_request_resets_the_rest() -> None:
    user = Recorder()
    user.feed(HELLO + headers_frame(1))
    user.http.out.send_end(user.http.streams[1], b"\x88")
    assert codes_in(user.output()) == [("reset", 1, wire.NO_ERROR)]


# Windows.


def test_what_a_peer_may_send_is_bounded_and_given_back_as_it_is_read() -> None:
    limits = GrpcLimits(stream_window_bytes=100_000, connection_window_bytes=200_000)
    user = Recorder(limits)
    user.feed(HELLO + headers_frame(1))
    sent = b"".join(user.feed(data(1, bytes(10_000))) for _ in range(6))
    updates = [(n, wire.number_in(p)) for k, _, n, p in frames_in(sent) if k == wire.WINDOW_UPDATE]
    assert updates == [(1, 60_000)]


def test_more_data_than_a_window_is_an_error() -> None:
    user = Recorder(GrpcLimits(stream_window_bytes=20_000))
    user.http.credit = lambda stream, size: None  # type: ignore[method-assign]
    user.feed(HELLO + headers_frame(1))
    told = codes_in(user.feed(data(1, bytes(15_000)) + data(1, bytes(15_000))))
    assert told == [("reset", 1, wire.FLOW_CONTROL_ERROR)]


def test_padding_counts_as_data() -> None:
    user = Recorder(GrpcLimits(stream_window_bytes=1000))
    user.feed(HELLO + headers_frame(1))
    sent = user.feed(data(1, bytes((255,)) + bytes(255), wire.PADDED) * 2)
    user.feed(data(1, bytes((255,)) + b"x" + bytes(255), wire.PADDED))
    assert user.bodies[1] == b"x"
    assert codes_in(sent) == []


def test_replies_wait_for_their_windows() -> None:
    user = Recorder()
    user.feed(HELLO + setting(wire.INITIAL_WINDOW_SIZE, 10) + headers_frame(1))
    sent = frames_in(user.feed(data(1, b"0123456789abcdef", wire.END_STREAM)))
    assert [(k, p) for k, _, _, p in sent if k == wire.DATA] == [(wire.DATA, b"0123456789")]
    sent = frames_in(user.feed(window_update(1, 3)))
    assert [p for k, _, _, p in sent if k == wire.DATA] == [b"abc"]
    sent = frames_in(user.feed(setting(wire.INITIAL_WINDOW_SIZE, 13)))
    assert [p for k, _, _, p in sent if k == wire.DATA] == [b"def"]
    assert sent[-1][:3] == (wire.HEADERS, END, 1)


def test_a_window_below_zero_must_be_filled_first() -> None:
    user = Recorder()
    user.feed(HELLO + setting(wire.INITIAL_WINDOW_SIZE, 10) + headers_frame(1))
    user.feed(data(1, bytes(20), wire.END_STREAM))
    assert not user.http.out.has_data
    user.feed(setting(wire.INITIAL_WINDOW_SIZE, 0))
    assert not [k for k, *_ in frames_in(user.feed(window_update(1, 10))) if k == wire.DATA]
    assert [p for k, _, _, p in frames_in(user.feed(window_update(1, 1))) if k == 0] == [b"\0"]


def test_a_stream_that_waits_holds_up_no_other() -> None:
    user = Recorder()
    user.feed(HELLO + setting(wire.INITIAL_WINDOW_SIZE, 0) + headers_frame(1) + headers_frame(3))
    user.feed(data(1, b"one", wire.END_STREAM) + data(3, b"three", wire.END_STREAM))
    sent = frames_in(user.feed(window_update(3, 100)))
    assert [(n, p) for k, _, n, p in sent if k == wire.DATA] == [(3, b"three")]


def test_long_replies_take_turns() -> None:
    user = Recorder()
    user.feed(HELLO + headers_frame(1) + headers_frame(3) + window_update(0, 1 << 20))
    for number in (1, 3):
        user.http.out.send_data(user.http.streams[number], bytes(40_000))
    order = [n for k, _, n, _ in frames_in(user.output()) if k == wire.DATA]
    assert order == [1, 3, 1, 3, 1, 3]


# Floods.


@pytest.mark.parametrize(
    "flood",
    [PING, wire.settings_frame({}), wire.frame(wire.PRIORITY, 0, 1, bytes(5)), data(1, b"")],
    ids=["ping", "settings", "priority", "empty data"],
)
def test_a_flood_of_frames_that_bring_nothing_ends_the_connection(flood: bytes) -> None:
    user = Recorder()
    user.feed(HELLO + headers_frame(1))
    sent = codes_in(user.feed(flood * (COST_MAX + 1)))
    assert sent == [("goaway", 1, wire.ENHANCE_YOUR_CALM)]


def test_rapid_resets_end_the_connection() -> None:
    user = Recorder(replies=False)
    user.feed(HELLO)
    numbers = range(1, 2 * COST_MAX // RESET_COST + 3, 2)
    sent = user.feed(b"".join(headers_frame(n) + reset(n) for n in numbers))
    assert codes_in(sent)[-1][::2] == ("goaway", wire.ENHANCE_YOUR_CALM)


def test_an_endless_header_block_ends_the_connection() -> None:
    user = Recorder(GrpcLimits(headers_bytes_max=1000))
    more = wire.frame(wire.CONTINUATION, 0, 1, bytes(100))
    told = codes_in(user.feed(HELLO + headers_frame(1, flags=0) + more * 20))
    assert told == [("goaway", 0, wire.ENHANCE_YOUR_CALM)]


def test_empty_continuations_end_the_connection() -> None:
    user = Recorder()
    more = wire.frame(wire.CONTINUATION, 0, 1, b"")
    told = codes_in(
        user.feed(HELLO + headers_frame(1, flags=0) + more * (COST_MAX // RESET_COST + 1))
    )
    assert told == [("goaway", 0, wire.ENHANCE_YOUR_CALM)]


def test_pings_beside_calls_that_are_answered_are_no_flood() -> None:
    user = Recorder()
    user.feed(HELLO + window_update(0, 1 << 30))
    for number in range(1, 2 * COST_MAX, 2):
        user.feed(headers_frame(number) + PING * 3 + data(number, b"x", wire.END_STREAM))
    assert user.http.fault is None


def test_headers_of_too_many_bytes_reset_their_stream_only() -> None:
    user = Recorder(GrpcLimits(headers_bytes_max=1000))
    sent = user.feed(HELLO + headers_frame(1, request_headers(x="y" * 900)))
    assert codes_in(sent) == [("reset", 1, wire.ENHANCE_YOUR_CALM)]
    user.feed(headers_frame(3, flags=END))
    assert ("done", 3, b"") in user.seen


# The end.


def test_draining_first_announces_then_refuses_what_is_new() -> None:
    user = Recorder()
    user.feed(HELLO + headers_frame(1))
    user.http.drain()
    sent = frames_in(user.output())
    assert [k for k, *_ in sent] == [wire.GOAWAY, wire.PING]
    user.feed(headers_frame(3))  # it was on its way
    ping = sent[1][3]
    told = codes_in(user.feed(wire.frame(wire.PING, wire.ACK, 0, ping)))
    assert told == [("goaway", 3, wire.NO_ERROR)]
    user.feed(headers_frame(5, flags=END) + data(1, b"a", wire.END_STREAM))
    assert [each[1] for each in user.seen if each[0] == "done"] == [1]
    assert user.http.fault is None


# Bytes cut anywhere.

_FRAMES = st.one_of(
    st.builds(
        wire.frame,
        st.integers(0, 10),
        st.sampled_from([0, 1, 4, 5, 8, 9, 0x20, 0x2D]),
        st.sampled_from([0, 1, 3, 5, 7]),
        st.binary(max_size=12),
    ),
    st.builds(headers_frame, st.sampled_from([1, 3, 5]), flags=st.sampled_from([4, 5])),
    st.builds(data, st.sampled_from([1, 3, 5]), st.binary(max_size=9), st.sampled_from([0, 1])),
    st.builds(window_update, st.sampled_from([0, 1, 3]), st.integers(0, 40)),
    st.builds(setting, st.sampled_from([4, 5, 6]), st.integers(0, 20)),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(_FRAMES, max_size=12), st.integers(1, 30))
def test_bytes_cut_anywhere_do_the_same(frames: list[bytes], size: int) -> None:
    whole, cut = Recorder(), Recorder()
    sent = HELLO + b"".join(frames)
    assert whole.feed(sent) == cut.feed(sent, size)
    assert whole.seen == cut.seen
    assert whole.http.fault == cut.http.fault


class Spoken(asyncio.Protocol):
    """A connection on a real socket that answers whole requests, whatever they ask for."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.user = Recorder(GrpcLimits(streams_max=100), empty=b"hello")
        transport.write(self.user.output())

    def data_received(self, data: bytes) -> None:
        self.transport.write(self.user.feed(data))
        if self.user.http.fault is not None:
            self.transport.close()


@pytest.mark.process
@pytest.mark.skipif(H2SPEC is None, reason="needs h2spec (github.com/summerwind/h2spec)")
def test_h2spec_finds_nothing() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(Spoken, "127.0.0.1", 0)
        async with server:
            port = server.sockets[0].getsockname()[1]
            command = [str(H2SPEC), "-h", "127.0.0.1", "-p", str(port), "--timeout", "5"]
            done = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
            said, _ = await done.communicate()
            assert done.returncode == 0, said.decode()

    run(main())
