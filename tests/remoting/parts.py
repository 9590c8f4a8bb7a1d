"""Requests and answers that only these tests know, and a plain socket to be rude with."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import ClassVar

from sprocket.base.deadline import Deadline
from sprocket.protocol.command import Command, Header, Reply
from sprocket.remoting.endpoints import Endpoint, one_by_one
from sprocket.remoting.pool import Pool
from sprocket.remoting.server import Server
from sprocket.remoting.transport import Peer

ECHO, WAIT, SILENT, FAIL, REFUSE, BACK, LATE_FAIL = 9001, 9002, 9003, 9004, 9005, 9006, 9007


class Echo(Header):
    """Gives its text and body back."""

    code: ClassVar[int] = ECHO
    text: str = ""


class Wait(Header):
    """Is answered when the test says so."""

    code: ClassVar[int] = WAIT


class Silent(Header):
    """Is not answered."""

    code: ClassVar[int] = SILENT


class Fail(Header):
    """Its answer raises."""

    code: ClassVar[int] = FAIL


class LateFail(Header):
    """Its answer raises after a while."""

    code: ClassVar[int] = LATE_FAIL


class Refuse(Header):
    """Is answered with topic not found."""

    code: ClassVar[int] = REFUSE


class Back(Header):
    """Makes the server ask the caller to echo."""

    code: ClassVar[int] = BACK


class Answers:
    """What the test's server does; counts what came."""

    def __init__(self) -> None:
        self.seen: list[int] = []
        self.go = asyncio.Event()
        self.waiting = 0
        self.cancelled = 0

    def __call__(self, command: Command, peer: Peer) -> Reply | object | None:
        self.seen.append(command.code)
        match command.code:
            case 9001:
                return Reply(header=command.read(Echo), body=bytes(command.body))
            case 9002:
                return self._wait()
            case 9004:
                raise LookupError("bad luck")
            case 9005:
                return Reply(code=17, remark="no such topic")
            case 9006:
                return self._ask_back(peer)
            case 9007:
                return self._fail_later()
        return None

    async def _wait(self) -> Reply:
        self.waiting += 1
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return Reply(remark="went")

    async def _fail_later(self) -> Reply:
        await asyncio.sleep(0)
        raise LookupError("bad luck")

    async def _ask_back(self, peer: Peer) -> Reply:
        reply = await peer.call(Echo("from server"), body=b"b", deadline=soon())
        return Reply(remark=f"{reply.code} {reply.read(Echo).text} {bytes(reply.body)!r}")


def soon() -> Deadline:
    return Deadline.after(60)


async def until(condition: object) -> None:
    """Lets the loop turn until `condition()` is true."""
    assert callable(condition)
    for _ in range(60_000):
        if condition():
            return
        await asyncio.sleep(0.001)
    raise AssertionError("it did not come true")


@asynccontextmanager
async def serving(answer: Endpoint, **settings: object) -> AsyncIterator[tuple[Server, Pool]]:
    async with Server(one_by_one(answer), **settings) as server, Pool() as pool:  # type: ignore[arg-type]
        yield server, pool
