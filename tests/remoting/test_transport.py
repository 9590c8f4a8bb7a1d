"""One connection: what is promised to either side."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import tracemalloc

import pytest

from sprocket.base.deadline import Deadline
from sprocket.base.errors import CallTimeout, ConnectionLost
from sprocket.protocol.command import BINARY, Command, Reply
from sprocket.protocol.connection import Connection
from sprocket.protocol.frame import encode_request
from sprocket.remoting.endpoints import one_by_one
from sprocket.remoting.limits import ConnectionLimits
from sprocket.remoting.pool import Pool
from sprocket.remoting.server import Server
from sprocket.remoting.transport import Peer
from sprocket.remoting.turns import Turns
from sprocket.remoting.unfinished import UnfinishedFrames
from tests.remoting.parts import (
    Answers,
    Back,
    Echo,
    Fail,
    LateFail,
    Silent,
    Wait,
    serving,
    soon,
    until,
)
from tests.support import run

pytestmark = pytest.mark.usefixtures("either_loop")


def frame(header: object, opaque: int, **more: object) -> bytes:
    return b"".join(encode_request(header, opaque, **more))  # type: ignore[arg-type]


async def replies_of(reader: asyncio.StreamReader, count: int) -> list[Command]:
    connection, replies = Connection(), []
    while len(replies) < count:
        data = await asyncio.wait_for(reader.read(1 << 16), 5)
        assert data, f"closed after {len(replies)} replies"
        replies += connection.receive(data)
    return replies


def test_many_requests_of_one_read_are_answered_in_order_and_in_one_write() -> None:
    class Counting(Peer):
        writes = 0

        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            super().connection_made(transport)
            write = self._transport.write

            def counted(content: bytes) -> None:
                Counting.writes += 1
                write(content)

            self._writer.connected(_Seen(self._transport, counted))  # type: ignore[arg-type]

    class _Seen:
        def __init__(self, transport: asyncio.Transport, write: object) -> None:
            self._transport = transport
            self.write = write

        def __getattr__(self, name: str) -> object:
            return getattr(self._transport, name)

    async def main() -> None:
        loop = asyncio.get_running_loop()
        answers, turns = Answers(), Turns(loop)
        server = await loop.create_server(
            lambda: Counting(
                one_by_one(answers),  # type: ignore[arg-type]
                ConnectionLimits(),
                is_client=True,
                turns=turns,
                unfinished=UnfinishedFrames(1 << 20),
            ),
            "127.0.0.1",
            0,
        )
        port = server.sockets[0].getsockname()[1]
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"".join(frame(Echo(f"t{i}"), i, body=b"x" * i) for i in range(50)))
        replies = await replies_of(reader, 50)
        assert [r.opaque for r in replies] == list(range(50))
        assert [r.read(Echo).text for r in replies] == [f"t{i}" for i in range(50)]
        assert Counting.writes <= 2
        writer.close()
        server.close()

    run(main())


def test_whoever_asks_for_much_at_once_does_not_hold_up_the_others() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        order: list[str] = []
        writers: list[asyncio.StreamWriter] = []

        def answer(command: Command, peer: Peer) -> Reply:
            text = command.read(Echo).text
            if not order:
                writers[1].write(frame(Echo("another"), 1))
            order.append(text)
            ends = loop.time() + 0.0002
            while loop.time() < ends:
                pass
            return Reply()

        async with Server(one_by_one(answer)) as server:
            pairs = [await asyncio.open_connection("127.0.0.1", server.port) for _ in range(2)]
            writers += [writer for _, writer in pairs]
            writers[0].write(b"".join(frame(Echo(f"{i}"), i) for i in range(500)))
            replies = await replies_of(pairs[0][0], 500)
            await replies_of(pairs[1][0], 1)
            for writer in writers:
                writer.close()
        assert [reply.opaque for reply in replies] == list(range(500))
        assert "another" in order[:400]

    run(main())


def test_requests_that_become_tasks_do_not_hold_up_the_others_either() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        order: list[str] = []
        writers: list[asyncio.StreamWriter] = []

        async def answer(command: Command, peer: Peer) -> Reply:
            text = command.read(Echo).text
            if not order:
                writers[1].write(frame(Echo("another"), 1))
            order.append(text)
            ends = loop.time() + 0.001
            while loop.time() < ends:
                pass
            await asyncio.sleep(0)
            return Reply()

        async with Server(one_by_one(answer)) as server:
            pairs = [await asyncio.open_connection("127.0.0.1", server.port) for _ in range(2)]
            writers += [writer for _, writer in pairs]
            writers[0].write(b"".join(frame(Echo(f"{i}"), i) for i in range(300)))
            replies = await replies_of(pairs[0][0], 300)
            await replies_of(pairs[1][0], 1)
            for writer in writers:
                writer.close()
        assert sorted(reply.opaque for reply in replies) == list(range(300))
        assert "another" in order[:200]

    run(main())


def test_what_was_put_off_is_answered_before_the_connection_is_let_go() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()

        def answer(command: Command, peer: Peer) -> Reply:
            ends = loop.time() + 0.0002
            while loop.time() < ends:
                pass
            return Reply()

        async with Server(one_by_one(answer)) as server:
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            frames = b"".join(frame(Echo(f"{i}"), i) for i in range(200))
            writer.write(frames + b"\xff" * 8)
            replies = await replies_of(reader, 200)
            assert [reply.opaque for reply in replies] == list(range(200))
            writer.close()

    run(main())


def test_a_frame_in_single_bytes_is_one_request() -> None:
    async def main() -> None:
        async with serving(Answers()) as (server, _):
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            for byte in frame(Echo("slow"), 7, body=b"abc"):
                writer.write(bytes([byte]))
                await writer.drain()
            (reply,) = await replies_of(reader, 1)
            assert (reply.opaque, bytes(reply.body)) == (7, b"abc")
            writer.close()

    run(main())


def test_a_request_that_waits_does_not_hold_up_the_others() -> None:
    async def main() -> None:
        answers = Answers()
        async with serving(answers) as (server, pool):
            held = asyncio.ensure_future(pool.call(server.address, Wait(), deadline=soon()))
            reply = await pool.call(server.address, Echo("quick"), deadline=soon())
            assert reply.read(Echo).text == "quick"
            assert not held.done()
            answers.go.set()
            assert (await held).remark == "went"

    run(main())


def test_the_answer_comes_in_the_requests_own_serialisation() -> None:
    async def main() -> None:
        async with Server(one_by_one(Answers())) as server, Pool(serialization=BINARY) as pool:
            reply = await pool.call(server.address, Echo("b"), body=b"body", deadline=soon())
            assert reply.serialization == BINARY
            assert reply.read(Echo).text == "b"

    run(main())


@pytest.mark.parametrize("header", [Fail(), LateFail()])
def test_an_answer_that_raises_costs_only_its_own_request(
    header: Fail | LateFail, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        async with serving(Answers()) as (server, pool):
            with caplog.at_level(logging.CRITICAL):
                failed, good = await asyncio.gather(
                    pool.call(server.address, header, deadline=soon()),
                    pool.call(server.address, Echo("x"), deadline=soon()),
                )
            assert (failed.code, good.code) == (1, 0)
            assert "LookupError" in (failed.remark or "")

    run(main())


def test_one_way_requests_are_never_answered() -> None:
    async def main() -> None:
        answers = Answers()
        async with serving(answers) as (server, _):
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            for header in (Echo("x"), Fail(), LateFail()):
                writer.write(frame(header, 1, is_oneway=True))
            writer.write(frame(Echo("last"), 2))
            (reply,) = await replies_of(reader, 1)
            assert reply.opaque == 2
            assert len(answers.seen) == 4
            writer.close()

    run(main())


@pytest.mark.parametrize(
    "nonsense",
    [
        b"\0\0\0\0",
        b"\0\0\0\3abc",
        b"\x7f\xff\xff\xff",
        b"GET / HTTP/1.1\r\n\r\n",
        b"\0\0\0\x08\0\xff\xff\xff1234",
        b"\0\0\0\x08\x09\0\0\x041234",
        b"\0\0\0\x08\0\0\0\x04[1}x",
    ],
)
def test_whoever_breaks_the_protocol_is_let_go_after_the_good_requests(nonsense: bytes) -> None:
    async def main() -> None:
        async with serving(Answers()) as (server, pool):
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            writer.write(frame(Echo("good"), 5) + nonsense)
            (reply,) = await replies_of(reader, 1)
            assert reply.opaque == 5
            assert await asyncio.wait_for(reader.read(), 5) == b""
            writer.close()
            other = await pool.call(server.address, Echo("other"), deadline=soon())
            assert other.code == 0
            await until(lambda: len(server.peers) == 1)

    run(main())


def test_requests_end_when_their_connection_ends() -> None:
    async def main() -> None:
        answers = Answers()
        async with serving(answers) as (server, _):
            _, writer = await asyncio.open_connection("127.0.0.1", server.port)
            writer.write(frame(Wait(), 1) + frame(Wait(), 2))
            await until(lambda: answers.waiting == 2)
            writer.close()
            await until(lambda: answers.cancelled == 2)

    run(main())


def test_both_sides_may_ask() -> None:
    async def main() -> None:
        async with Server(one_by_one(Answers())) as server, Pool(endpoint=Answers()) as pool:  # type: ignore[arg-type]
            reply = await pool.call(server.address, Back(), deadline=soon())
            assert reply.remark == "0 from server b'b'"

    run(main())


def test_a_call_gives_up_at_its_deadline_and_a_late_reply_finds_nobody() -> None:
    async def main() -> None:
        answers = Answers()
        async with serving(answers) as (server, pool):
            with pytest.raises(CallTimeout):
                await pool.call(server.address, Wait(), deadline=Deadline.after(0.02))
            with pytest.raises(CallTimeout):
                await pool.call(server.address, Echo(), deadline=Deadline.after(-1))
            answers.go.set()
            reply = await pool.call(server.address, Echo("next"), deadline=soon())
            assert reply.read(Echo).text == "next"

    run(main())


def test_a_cancelled_call_leaves_nothing_behind() -> None:
    async def main() -> None:
        answers = Answers()
        async with serving(answers) as (server, pool):
            call = asyncio.ensure_future(pool.call(server.address, Wait(), deadline=soon()))
            await until(lambda: answers.waiting == 1)
            call.cancel()
            await asyncio.wait([call])
            peer = await pool.peer(server.address, soon())
            assert not peer.is_busy

    run(main())


def test_a_request_that_is_written_already_is_a_call_like_others() -> None:
    async def main() -> None:
        answers = Answers()
        async with (
            Server(one_by_one(answers)) as server,  # type: ignore[arg-type]
            Pool(limits=ConnectionLimits(calls_max=2)) as pool,
        ):
            assert pool.connected(server.address) is None
            peer = await pool.peer(server.address, soon())
            assert pool.connected(server.address) is peer
            numbers = [peer.number_of_call() for _ in range(2)]
            calls = [
                asyncio.ensure_future(peer.call_written(number, frame(Wait(), number), b"", soon()))
                for number in numbers
                if number is not None
            ]
            await until(lambda: answers.waiting == 2)
            assert peer.number_of_call() is None, "one more would have to wait"
            calls[0].cancel()
            await asyncio.wait([calls[0]])
            assert peer.number_of_call() is not None
            answers.go.set()
            assert (await calls[1]).remark == "went"
            assert not peer.is_busy

    run(main())


def test_calls_fail_at_once_when_their_connection_breaks() -> None:
    async def main() -> None:
        answers = Answers()
        async with serving(answers) as (server, pool):
            call = asyncio.ensure_future(
                pool.call(server.address, Wait(), deadline=Deadline.never())
            )
            await until(lambda: answers.waiting == 1)
            server.peers[0].abort()
            with pytest.raises(ConnectionLost):
                await call

    run(main())


def test_nothing_more_is_read_from_a_client_that_does_not_read() -> None:
    async def main() -> None:
        answers = Answers()
        limits = ConnectionLimits(unwritten_bytes_max=1 << 16)
        async with serving(answers, limits=limits) as (server, pool):
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port, limit=1 << 10)
            writer.transport.pause_reading()
            request = frame(Echo(), 1, body=bytes(1 << 18))
            sent = 0
            while sent < 400:
                writer.write(request)
                sent += 1
                try:
                    await asyncio.wait_for(writer.drain(), 0.3)
                except TimeoutError:
                    break
            assert sent < 400
            taken = len(answers.seen)
            assert taken < sent
            reply = await pool.call(server.address, Echo("other"), deadline=soon())
            assert reply.code == 0
            writer.transport.resume_reading()
            replies = await replies_of(reader, sent)
            assert len(replies) == sent
            writer.close()

    run(main())


def test_no_more_requests_are_handled_while_their_replies_are_unread() -> None:
    async def main() -> None:
        seen = 0

        def answer(command: Command, peer: Peer) -> Reply:
            nonlocal seen
            seen += 1
            return Reply(body=bytes(1 << 20))

        async with serving(answer) as (server, _):
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port, limit=1 << 10)
            writer.transport.pause_reading()
            writer.write(b"".join(frame(Echo(), number) for number in range(300)))
            await until(lambda: seen > 0)
            await asyncio.sleep(0.05)
            # What the sockets take, some MiB, and the limit of 1 MiB.
            assert seen < 60, "300 requests came in one read"
            writer.transport.resume_reading()
            replies = await replies_of(reader, 300)
            assert [reply.opaque for reply in replies] == list(range(300))
            writer.close()

    run(main())


def test_a_peer_that_never_reads_its_late_replies_is_let_go(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main() -> None:
        async def later() -> Reply:
            await asyncio.sleep(0)
            return Reply(body=bytes(1 << 20))

        def answer(command: Command, peer: Peer) -> object:
            return later() if command.opaque else Reply()

        limits = ConnectionLimits(unread_bytes_max=8 << 20)
        async with serving(answer, limits=limits) as (server, pool):  # type: ignore[arg-type]
            other = await pool.peer(server.address, soon())
            _, writer = await asyncio.open_connection("127.0.0.1", server.port, limit=1 << 10)
            writer.transport.pause_reading()
            writer.write(b"".join(frame(Echo(), number) for number in range(1, 100)))
            await until(lambda: len(server.peers) == 1)
            assert not other.is_closed
            writer.close()

    run(main())
    assert "it reads nothing" in caplog.text


def test_a_stop_does_not_wait_for_all_that_was_asked() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        seen = 0

        def answer(command: Command, peer: Peer) -> Reply:
            nonlocal seen
            seen += 1
            ends = loop.time() + 0.02
            while loop.time() < ends:
                pass
            return Reply()

        async with Server(one_by_one(answer)) as server:
            _, writer = await asyncio.open_connection("127.0.0.1", server.port)
            writer.write(b"".join(frame(Echo(), number) for number in range(500)))
            await until(lambda: seen > 0)
            await server.drain(Deadline.after(0.1))
            assert seen < 100
            writer.close()

    run(main())


def test_incomplete_frames_of_many_connections_are_bounded(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main() -> None:
        limits = ConnectionLimits(frame_bytes_max=2 << 20, unfinished_bytes_max=4 << 20)
        async with serving(Answers(), limits=limits) as (server, pool):
            pairs = [await asyncio.open_connection("127.0.0.1", server.port) for _ in range(6)]
            part = frame(Echo(), 1, body=bytes(1_200_000))[:-100]
            for _, writer in pairs:
                writer.write(part)
                await writer.drain()
            await until(lambda: len(server.peers) == 3)
            with contextlib.suppress(ConnectionResetError):
                assert await asyncio.wait_for(pairs[0][0].read(), 5) == b""
            body = bytes(1 << 20)
            reply = await pool.call(server.address, Echo("x"), body=body, deadline=soon())
            assert len(reply.body) == 1 << 20
            for _, writer in pairs:
                writer.close()

    run(main())
    assert "is let go" in caplog.text


def test_one_frame_may_be_as_long_as_the_limit_of_a_frame_says() -> None:
    async def main() -> None:
        limits = ConnectionLimits(unfinished_bytes_max=1 << 20)
        async with serving(Answers(), limits=limits) as (server, pool):
            body = bytes(8 << 20)
            reply = await pool.call(server.address, Echo("x"), body=body, deadline=soon())
            assert len(reply.body) == len(body)

    run(main())


def test_what_a_connection_kept_is_given_back_when_it_ends() -> None:
    async def main() -> None:
        async with serving(Answers()) as (server, _):
            tracemalloc.start()
            gc.disable()
            try:
                for _ in range(4):
                    _, writer = await asyncio.open_connection("127.0.0.1", server.port)
                    writer.write(frame(Echo(), 1, body=bytes(4 << 20))[:-100])
                    await writer.drain()
                    await until(lambda: server.peers)
                    writer.close()
                    await until(lambda: not server.peers)
                kept, _ = tracemalloc.get_traced_memory()
            finally:
                gc.enable()
                tracemalloc.stop()
            assert kept < 8 << 20

    run(main())


def test_nothing_more_is_read_while_too_many_requests_wait() -> None:
    async def main() -> None:
        answers = Answers()
        async with serving(answers, limits=ConnectionLimits(tasks_max=10)) as (server, _):
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            for number in range(10):
                writer.write(frame(Wait(), number))
            await until(lambda: answers.waiting == 10)
            writer.write(frame(Echo(), 10))
            await asyncio.sleep(0.02)
            assert len(answers.seen) == 10
            answers.go.set()
            replies = await replies_of(reader, 11)
            assert sorted(r.opaque for r in replies) == list(range(11))
            writer.close()

    run(main())


def test_calls_beyond_the_limit_wait_for_their_turn() -> None:
    async def main() -> None:
        answers = Answers()
        async with (
            Server(one_by_one(answers)) as server,  # type: ignore[arg-type]
            Pool(limits=ConnectionLimits(calls_max=2)) as pool,
        ):
            calls = [
                asyncio.ensure_future(pool.call(server.address, Wait(), deadline=soon()))
                for _ in range(4)
            ]
            await until(lambda: answers.waiting == 2)
            with pytest.raises(CallTimeout, match="takes no more"):
                await pool.call(server.address, Echo(), deadline=Deadline.after(0.02))
            answers.go.set()
            assert [r.remark for r in await asyncio.gather(*calls)] == ["went"] * 4

    run(main())


def test_whoever_asks_to_be_told_is_told_of_the_end_once() -> None:
    async def main() -> None:
        told: list[Peer] = []
        async with serving(Answers()) as (server, pool):
            peer = await pool.peer(server.address, soon())
            peer.on_close(told.append)
            peer.abort()
            await peer.wait_closed(soon())
            assert told == [peer]
            peer.on_close(told.append)
            assert told == [peer, peer]
            with pytest.raises(ConnectionLost):
                await peer.call(Silent(), deadline=soon())
            peer.send_oneway(Silent())

    run(main())


def test_the_address_of_the_other_end_is_known() -> None:
    async def main() -> None:
        async with serving(Answers()) as (server, pool):
            peer = await pool.peer(server.address, soon())
            assert peer.address == server.address

    run(main())


def test_an_answer_may_be_a_plain_none() -> None:
    async def main() -> None:
        def answer(command: Command, peer: Peer) -> Reply | None:
            return None if command.code == Silent.code else Reply()

        async with serving(answer) as (server, pool):
            silent = asyncio.ensure_future(
                pool.call(server.address, Silent(), deadline=Deadline.after(0.05))
            )
            assert (await pool.call(server.address, Echo(), deadline=soon())).code == 0
            with pytest.raises(CallTimeout):
                await silent

    run(main())
