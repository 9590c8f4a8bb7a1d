"""What one client may do to its connection, and to the others', in virtual time."""

from __future__ import annotations

import asyncio

import h2.settings
import pytest

from sprocket.base.deadline import Deadline
from sprocket.proxy.http2 import frames as wire
from sprocket.proxy.http2.call_form import Method, Streaming, Unary
from sprocket.proxy.http2.calls import GrpcCall
from sprocket.proxy.http2.limits import GrpcLimits
from sprocket.proxy.http2.server import GrpcServer
from sprocket.testing.loop import simulate
from sprocket.testing.network import Network
from tests.proxy.http2.kit import (
    HELLO,
    Methods,
    connect,
    headers_frame,
    message,
    request_headers,
    serving,
    until,
)


class Rude(asyncio.Protocol):
    """A plain connection."""

    def __init__(self) -> None:
        self.received = b""
        self.is_lost = False

    def data_received(self, data: bytes) -> None:
        self.received += data

    def connection_lost(self, error: Exception | None) -> None:
        self.is_lost = True


async def rude(server: GrpcServer, data: bytes) -> tuple[asyncio.Transport, Rude]:
    transport, protocol = await asyncio.get_running_loop().create_connection(
        Rude, "127.0.0.1", server.port
    )
    transport.write(data)
    return transport, protocol


@pytest.mark.parametrize("said", [b"", wire.PREFACE[:7], wire.PREFACE, HELLO[:-2]])
def test_who_does_not_begin_is_let_go(said: bytes) -> None:
    async def main(_: Network) -> None:
        async with serving(Methods()) as server:
            _, peer = await rude(server, said)
            client = await connect(server)
            await asyncio.sleep(9)
            assert not peer.is_lost
            await asyncio.sleep(2)
            assert peer.is_lost
            assert (await client.call()).status == 0

    simulate(main)


def test_who_speaks_something_else_is_let_go_at_once() -> None:
    async def main(_: Network) -> None:
        async with serving(Methods()) as server:
            _, peer = await rude(server, b"GET / HTTP/1.1\r\nHost: here\r\n\r\n")
            await until(lambda: peer.is_lost)
            why = wire.goaway_frame(0, wire.PROTOCOL_ERROR, "it does not speak HTTP/2")
            assert why in peer.received

    simulate(main)


def test_an_idle_client_is_let_go_and_one_with_a_call_is_asked() -> None:
    async def main(_: Network) -> None:
        methods = Methods()
        async with serving(methods) as server:
            idle, waiting = await connect(server), await connect(server)
            waiting.start("/echo.Echo/Hang")
            await asyncio.sleep(400)
            assert idle.is_lost
            assert idle.goaways == [wire.NO_ERROR]
            assert not waiting.is_lost
            assert waiting.pings > 0
            assert not methods.cancelled

    simulate(main)


def test_a_client_that_is_gone_without_a_word_is_let_go() -> None:
    async def main(_: Network) -> None:
        methods = Methods()
        async with serving(methods) as server:
            transport, peer = await rude(
                server, HELLO + headers_frame(1, request_headers("/echo.Echo/Hang"))
            )
            await until(lambda: bool(methods.calls))
            await asyncio.sleep(500)  # it answers no PING
            assert peer.is_lost
            assert methods.cancelled
            transport.close()

    simulate(main)


def test_requests_that_never_end_and_replies_never_read_are_reset() -> None:
    async def main(_: Network) -> None:
        methods = Methods()
        async with serving(methods) as server:
            client = await connect(server, reads=False)
            half = client.start()
            client.send(half, b"\0\0\0\0\5ab")
            unread = client.start("/echo.Echo/Stream", x_count="10")
            client.send(unread, message(bytes(30_000)), ends=True)
            for _ in range(50):
                await asyncio.sleep(10)
                client.h2.ping(b"12345678")
                client.flush()
            assert client.replies[half].reset == wire.CANCEL
            assert client.replies[unread].reset == wire.CANCEL
            assert not client.is_lost

    simulate(main)


def test_a_reply_that_is_read_slowly_goes_on() -> None:
    async def main(_: Network) -> None:
        methods = Methods()
        async with serving(methods, GrpcLimits(idle_seconds=10)) as server:
            client = await connect(server, reads=False)
            client.h2.update_settings({h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: 0})
            client.flush()
            await asyncio.sleep(1)
            number = client.start("/echo.Echo/Hang")
            await until(lambda: bool(methods.calls))
            for _ in range(8):  # as much waits each time, and it is not the same
                methods.calls[0].send(bytes(1000))
                await asyncio.sleep(10)
                client.h2.increment_flow_control_window(1005, number)
                client.flush()
            assert client.replies[number].reset is None
            assert methods.calls[0].stream.queued_bytes < 2000

    simulate(main)


def test_a_client_with_thousands_of_calls_at_once_leaves_turns_to_others() -> None:
    order: list[str] = []

    async def main(network: Network) -> None:
        loop = asyncio.get_running_loop()

        def slow(call: object, request: bytes) -> bytes:
            order.append(request.decode())
            loop.advance(0.0005)  # type: ignore[attr-defined]  # it takes half a millisecond
            return request

        async with GrpcServer({"/echo.Echo/Unary": Unary(slow)}) as server:
            many, one = await connect(server), await connect(server)
            numbers = []
            for _ in range(500):
                number = many.h2.get_next_available_stream_id()
                many.h2.send_headers(number, request_headers("/echo.Echo/Unary"))
                many.h2.send_data(number, message(b"many"), end_stream=True)
                numbers.append(number)
            many.flush()
            await until(lambda: bool(order))
            reply = await one.call(data=message(b"one"))
            assert reply.messages == [b"one"]
            for number in numbers:
                assert (await many.over(number)).status == 0

    simulate(main)
    assert order.index("one") < 350


@pytest.mark.parametrize("is_stream", [False, True], ids=["unary", "stream"])
def test_calls_that_become_tasks_leave_turns_to_others_too(is_stream: bool) -> None:
    order: list[str] = []

    async def main(network: Network) -> None:
        loop = asyncio.get_running_loop()

        async def slow(call: GrpcCall, request: bytes) -> bytes:
            order.append(request.decode())
            loop.advance(0.02)  # type: ignore[attr-defined]  # it takes 20 ms before it waits
            await asyncio.sleep(0)
            return request

        async def slow_stream(call: GrpcCall) -> None:
            call.send(await slow(call, await call.receive() or b""))

        methods: dict[str, Method] = {
            "/echo.Echo/Slow": Streaming(slow_stream) if is_stream else Unary(slow),
            "/echo.Echo/Unary": Unary(lambda call, request: order.append("one") or request),
        }
        async with GrpcServer(methods) as server:
            many, one = await connect(server), await connect(server)
            numbers = []
            for _ in range(200):
                number = many.h2.get_next_available_stream_id()
                many.h2.send_headers(number, request_headers("/echo.Echo/Slow"))
                many.h2.send_data(number, message(b"many"), end_stream=True)
                numbers.append(number)
            many.flush()
            await until(lambda: bool(order))
            assert (await one.call(data=message(b"one"))).messages == [b"one"]
            many.h2.reset_stream(numbers[-1])
            many.flush()
            for number in numbers[:-1]:
                assert (await many.over(number)).status == 0

    simulate(main)
    assert order.index("one") < 20
    assert order.count("many") >= 199


def test_a_client_that_reads_nothing_is_not_read() -> None:
    async def main(_: Network) -> None:
        methods = Methods()
        async with serving(methods, GrpcLimits(unwritten_bytes_max=10_000)) as server:
            client = await connect(server)
            client.h2.ping(b"12345678")
            client.flush()
            peer = server.peers[0]
            peer.pause_writing()
            number = client.start(ends=False)
            client.send(number, message(b"x"), ends=True)
            await asyncio.sleep(1)
            assert not client.replies[number].is_over
            peer.resume_writing()
            assert (await client.over(number)).messages == [b"x"]

    simulate(main)


def test_unread_replies_of_all_clients_have_a_bound() -> None:
    async def main(_: Network) -> None:
        limits = GrpcLimits(unread_bytes_total_max=1_000_000)
        async with serving(Methods(), limits) as server:
            other = await connect(server)
            greedy = []
            for _ in range(10):
                client = await connect(server, reads=False)
                greedy.append(client)
                await asyncio.sleep(0.5)  # its windows come
                for _ in range(4):
                    number = client.start()
                    client.send(number, message(bytes(60_000)), ends=True)
                await asyncio.sleep(1)
            assert [client.is_lost for client in greedy] == [True] * 5 + [False] * 5
            assert (await other.call()).status == 0

    simulate(main)


def test_draining_lets_calls_end() -> None:
    async def main(_: Network) -> None:
        methods = Methods()
        async with serving(methods) as server:
            client, idle = await connect(server), await connect(server)
            await idle.call()
            number = client.start("/echo.Echo/Wait")
            client.send(number, message(b"x"), ends=True)
            await until(lambda: bool(methods.calls))
            draining = asyncio.create_task(server.drain(Deadline.after(30)))
            await until(lambda: idle.is_lost)
            assert not client.is_lost
            methods.go.set()
            assert (await client.over(number)).messages == [b"x"]
            await draining
            assert client.goaways[0] == wire.NO_ERROR
            await until(lambda: client.is_lost)

    simulate(main)


def test_draining_ends_at_its_deadline() -> None:
    async def main(_: Network) -> None:
        methods = Methods()
        async with serving(methods) as server:
            client = await connect(server)
            client.start("/echo.Echo/Hang")
            await until(lambda: bool(methods.calls))
            began = asyncio.get_running_loop().time()
            await server.drain(Deadline.after(5))
            assert asyncio.get_running_loop().time() - began == pytest.approx(5, abs=1)
            assert methods.cancelled

    simulate(main)
