"""Calls, by a client of others' making, in virtual time."""

from __future__ import annotations

import asyncio
import gc
import gzip
import logging
from collections.abc import Awaitable

import pytest

from sprocket.proxy.http2 import frames as wire
from sprocket.proxy.http2.call_form import Unary
from sprocket.proxy.http2.limits import GrpcLimits
from sprocket.proxy.http2.status import GrpcStatus
from sprocket.remoting.turns import Turns
from sprocket.testing.loop import simulate
from sprocket.testing.network import Network
from tests.proxy.http2.kit import Methods, connect, message, request_headers, serving, until


def test_a_unary_call_is_answered() -> None:
    async def main(_: Network) -> None:
        async with serving(Methods()) as server:
            client = await connect(server)
            reply = await client.call()
            assert (reply.messages, reply.status) == ([b"hello"], 0)
            assert reply.headers[":status"] == "200"
            assert reply.headers["content-type"] == "application/grpc"

    simulate(main)


def test_requests_may_be_cut_packed_and_of_any_size() -> None:
    async def main(_: Network) -> None:
        async with serving(Methods()) as server:
            client = await connect(server)
            for size in (0, 1, 16_379, 16_380, 60_000):
                reply = await client.call(data=message(b"x" * size))
                assert reply.messages == [b"x" * size]
            packed = message(gzip.compress(b"y" * 1000), 1)
            assert (await client.call(data=packed, grpc_encoding="gzip")).messages == [b"y" * 1000]
            number = client.start()
            for byte in message(b"slow"):
                client.send(number, bytes((byte,)))
                await asyncio.sleep(0.01)
            client.h2.end_stream(number)
            client.flush()
            assert (await client.over(number)).messages == [b"slow"]

    simulate(main)


@pytest.mark.parametrize(
    ("path", "data", "status", "text"),
    [
        ("/echo.Echo/No", None, GrpcStatus.UNIMPLEMENTED, "unknown method /echo.Echo/No"),
        ("/echo.Echo/Refuse", None, GrpcStatus.PERMISSION_DENIED, "100 %25%0A%C3%BCnd"),
        ("/echo.Echo/Fail", None, GrpcStatus.UNKNOWN, "internal error: LookupError"),
        ("/echo.Echo/Unary", b"", GrpcStatus.INTERNAL, "no message"),
        ("/echo.Echo/Unary", message(b"1") * 2, GrpcStatus.INTERNAL, "a second message"),
        ("/echo.Echo/Unary", message(b"12")[:-1], GrpcStatus.INTERNAL, "in the middle"),
        ("/echo.Echo/Both", message(b"12")[:-1], GrpcStatus.INTERNAL, "in the middle"),
        ("/echo.Echo/Unary", message(bytes(1001)), GrpcStatus.RESOURCE_EXHAUSTED, "1000 are"),
        ("/echo.Echo/Unary", b"\0\0\1\0\0", GrpcStatus.RESOURCE_EXHAUSTED, "65536 bytes"),
        ("/echo.Echo/Unary", message(b"x", 1), GrpcStatus.INTERNAL, "without grpc-encoding"),
    ],
)  # fmt: skip
def test_calls_that_fail_say_why(
    path: str, data: bytes | None, status: GrpcStatus, text: str
) -> None:
    async def main(_: Network) -> None:
        async with serving(Methods(), GrpcLimits(message_bytes_max=1000)) as server:
            client = await connect(server)
            reply = await client.call(path, data)
            assert reply.status == status
            assert text in reply.trailers["grpc-message"]
            assert (await client.call()).messages == [b"hello"]

    simulate(main)


def test_a_stream_of_replies_and_one_both_ways() -> None:
    async def main(_: Network) -> None:
        async with serving(Methods()) as server:
            client = await connect(server)
            reply = await client.call("/echo.Echo/Stream")
            assert (reply.messages, reply.status) == ([b"hello"] * 32, 0)
            number = client.start("/echo.Echo/Both")
            for count in range(1, 4):
                client.send(number, message(b"%d" % count))
                await client.wait(lambda count=count: len(client.replies[number].messages) == count)
            client.h2.end_stream(number)
            client.flush()
            reply = await client.over(number)
            assert (reply.messages, reply.status) == ([b"1", b"2", b"3"], 0)

    simulate(main)


def test_a_deadline_ends_a_call_and_cancels_its_method() -> None:
    async def main(_: Network) -> None:
        methods = Methods()
        async with serving(methods) as server:
            client = await connect(server)
            began = asyncio.get_running_loop().time()
            for path in ("/echo.Echo/Wait", "/echo.Echo/Hang"):
                reply = await client.call(path, grpc_timeout="500m")
                assert reply.status == GrpcStatus.DEADLINE_EXCEEDED
            assert asyncio.get_running_loop().time() - began < 2
            assert methods.cancelled == ["/echo.Echo/Wait", "/echo.Echo/Hang"]
            assert methods.calls[0].is_over

    simulate(main)


def test_a_client_that_cancels_or_is_gone_cancels_the_method() -> None:
    async def main(_: Network) -> None:
        methods = Methods()
        async with serving(methods) as server:
            client = await connect(server)
            number = client.start("/echo.Echo/Hang")
            await until(lambda: len(methods.calls) == 1)
            client.h2.reset_stream(number, wire.CANCEL)
            client.flush()
            await until(lambda: len(methods.cancelled) == 1)
            client.start("/echo.Echo/Hang")
            await until(lambda: len(methods.calls) == 2)
            client.transport.abort()
            await until(lambda: len(methods.cancelled) == 2)
            methods.calls[1].send(b"nobody reads this")

    simulate(main)


def test_a_call_that_is_cancelled_before_it_begins_leaves_no_trace(
    recwarn: pytest.WarningsRecorder, caplog: pytest.LogCaptureFixture
) -> None:
    async def main(_: Network) -> None:
        async with serving(Methods()) as server:
            client = await connect(server)
            for _ in range(50):
                number = client.h2.get_next_available_stream_id()
                client.h2.send_headers(number, request_headers("/echo.Echo/Hang"))
                client.h2.reset_stream(number, wire.CANCEL)
            client.flush()
            assert (await client.call()).status == 0

    with caplog.at_level(logging.WARNING):
        simulate(main)
    assert not caplog.records
    assert not recwarn.list


def test_a_unary_call_that_is_cancelled_at_once_has_begun_with_all_that_is_inside_of_it(
    recwarn: pytest.WarningsRecorder,
) -> None:
    async def main(_: Network) -> None:
        methods = Methods()

        async def within(outcome: Awaitable[bytes]) -> bytes:
            return await outcome

        wait = methods.table()["/echo.Echo/Wait"]
        assert isinstance(wait, Unary)
        nested = Unary(lambda call, request: within(within(wait.answer(call, request))))  # type: ignore[arg-type]
        methods.table = lambda: {"/echo.Echo/Nested": nested}  # type: ignore[method-assign]
        async with serving(methods) as server:
            client = await connect(server)
            number = client.h2.get_next_available_stream_id()
            client.h2.send_headers(number, request_headers("/echo.Echo/Nested"))
            client.h2.send_data(number, b"\0\0\0\0\1x", end_stream=True)
            client.h2.reset_stream(number, wire.CANCEL)
            client.flush()
            await until(lambda: methods.cancelled == ["/echo.Echo/Nested"])

    simulate(main)
    gc.collect()
    assert not recwarn.list


def test_a_call_that_is_cancelled_before_its_turn_is_closed_with_all_that_is_inside_of_it(
    recwarn: pytest.WarningsRecorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main(_: Network) -> None:
        methods = Methods()
        served = methods.table()

        async def within(outcome: Awaitable[bytes]) -> bytes:
            return await outcome

        nested = Unary(lambda call, request: within(within(methods._wait(call, request))))
        methods.table = lambda: {**served, "/echo.Echo/Nested": nested}  # type: ignore[method-assign]
        async with serving(methods) as server:
            client = await connect(server)
            with monkeypatch.context() as nobodys_turn:
                nobodys_turn.setattr(Turns, "may_begin", lambda self, peer: False)
                number = client.h2.get_next_available_stream_id()
                client.h2.send_headers(number, request_headers("/echo.Echo/Nested"))
                client.h2.send_data(number, message(b"x"), end_stream=True)
                client.h2.reset_stream(number, wire.CANCEL)
                client.flush()
                assert (await client.call()).status == 0
            assert not methods.calls

    gc.collect()
    recwarn.clear()  # of what tests before this one left
    simulate(main)
    gc.collect()
    assert not recwarn.list


def test_a_method_that_is_cancelled_by_others_ends_its_call() -> None:
    async def main(_: Network) -> None:
        methods = Methods()
        async with serving(methods) as server:
            client = await connect(server)
            number = client.start("/echo.Echo/Hang")
            await until(lambda: bool(methods.calls))
            task = methods.calls[0].task
            assert task is not None
            task.cancel()
            assert (await client.over(number)).status == GrpcStatus.CANCELLED

    simulate(main)


def test_a_reader_that_stops_holds_up_only_itself() -> None:
    async def main(_: Network) -> None:
        methods = Methods()
        async with serving(methods) as server:
            slow, other = await connect(server, reads=False), await connect(server)
            number = slow.start("/echo.Echo/Stream", x_count="100")
            slow.send(number, message(bytes(50_000)), ends=True)
            await until(lambda: bool(methods.calls))
            for _ in range(20):
                assert (await other.call()).status == 0
            queued = methods.calls[0].stream.queued_bytes
            assert 0 < queued < 400_000
            # Other calls of the same client wait only for the window of the connection.
            assert not slow.replies[number].is_over
            slow.reads = True
            slow.h2.increment_flow_control_window(1 << 26)
            slow.h2.increment_flow_control_window(1 << 26, number)
            slow.flush()
            reply = await slow.over(number)
            assert len(reply.messages) == 100

    simulate(main)


def test_replies_that_are_never_read_have_a_bound() -> None:
    async def main(_: Network) -> None:
        limits = GrpcLimits(unread_bytes_max=500_000)
        async with serving(Methods(), limits) as server:
            greedy, other = await connect(server, reads=False), await connect(server)
            while not greedy.is_lost and not greedy.goaways:
                number = greedy.start()
                try:
                    greedy.send(number, message(bytes(16_000)), ends=True)
                except Exception:
                    break
                await asyncio.sleep(0.01)
            await until(lambda: len(server.peers) == 1)
            assert greedy.goaways == [wire.ENHANCE_YOUR_CALM]
            assert (await other.call()).status == 0

    simulate(main)


def test_many_long_messages_at_once_all_come_one_after_the_other() -> None:
    async def main(_: Network) -> None:
        limits = GrpcLimits(
            message_bytes_max=100_000, stream_window_bytes=70_000, connection_window_bytes=1 << 22
        )
        async with serving(Methods(), limits) as server:
            client = await connect(server)
            content = message(bytes(90_000))
            left = {client.start(): content for _ in range(20)}
            numbers = list(left)
            while left:
                is_stuck = True
                for number, rest in list(left.items()):
                    size = min(client.h2.local_flow_control_window(number), len(rest), 16_384)
                    if size:
                        is_stuck = False
                        client.send(number, rest[:size], ends=size == len(rest))
                        left[number] = rest[size:]
                    if not left[number]:
                        del left[number]
                if is_stuck:
                    await asyncio.sleep(0.05)
            for number in numbers:
                assert (await client.over(number)).messages == [bytes(90_000)]

    simulate(main)


def test_a_request_that_breaks_after_a_long_beginning_leaves_nothing_counted() -> None:
    async def main(_: Network) -> None:
        limits = GrpcLimits(message_bytes_max=100_000, stream_window_bytes=65_000)
        async with serving(Methods(), limits) as server:
            client = await connect(server)
            await client.call()
            for _ in range(4):
                number = client.start("/echo.Echo/Both")
                client.send(number, message(bytes(60_000))[:50_000])
                await asyncio.sleep(1)
                client.send(number, bytes(10_005) + b"\0\xff\xff\xff\xff")
                assert (await client.over(number)).status == GrpcStatus.RESOURCE_EXHAUSTED
            # Two messages at once that have more together than one may have: none is held up.
            one, other = client.start(), client.start()
            for number in (one, other):
                client.send(number, message(bytes(90_000))[:60_000])
            await asyncio.sleep(1)
            for number in (one, other):
                client.send(number, message(bytes(90_000))[60_000:], ends=True)
                assert (await client.over(number)).messages == [bytes(90_000)]

    simulate(main)


def test_messages_that_wait_take_what_they_have_packed() -> None:
    async def main(_: Network) -> None:
        methods = Methods()
        async with serving(methods) as server:
            client = await connect(server)
            number = client.start("/echo.Echo/Hang", grpc_encoding="gzip")
            packed = message(gzip.compress(bytes(15_000_000), 9), 1)
            client.send(number, packed * 4)
            await until(lambda: bool(methods.calls) and len(methods.calls[0].requests) == 4)
            assert sum(map(len, methods.calls[0].requests)) < 100_000
            assert await methods.calls[0].receive() == bytes(15_000_000)

    simulate(main)
