"""From code to function, and from error to code."""

from __future__ import annotations

import asyncio
from itertools import takewhile
from typing import Any, cast

import pytest

from sprocket.base.errors import (
    ClosedError,
    ConfigError,
    CorruptRecord,
    DiskFull,
    NoPermission,
    RemoteProtocolError,
    ReplyError,
)
from sprocket.broker.dispatch import Dispatch, SharedWait
from sprocket.protocol.command import ONEWAY, Command, Header, Reply
from sprocket.protocol.connection import Connection
from sprocket.protocol.requests.pull import ForbiddenReply
from sprocket.remoting.transport import Peer
from sprocket.store.log.drafts import IllegalDraft
from tests.support import run

MARKS = ForbiddenReply(forbidden_type=7)


class Nobody:
    """Stands where a connection would."""

    address = "127.0.0.1:1"


PEER = cast(Peer, Nobody())


class Marked(NoPermission):
    """An error with a header of its own."""

    header: Header = ForbiddenReply(forbidden_type=3)


ERRORS: list[tuple[Exception, int, str]] = [
    (ReplyError("odd", 555), 555, "odd"),
    (NoPermission("no"), 16, "no"),
    (IllegalDraft("too large"), 13, "too large"),
    (DiskFull("full"), 14, "full"),
    (ClosedError("closed"), 14, "closed"),
    (ConfigError("wrong"), 29, "wrong"),
    (CorruptRecord("bytes"), 1, "bytes"),
    (RemoteProtocolError("field"), 1, "field"),
    (ZeroDivisionError("oops"), 1, "ZeroDivisionError('oops')"),
]


def dispatch(error: Exception, *, is_late: bool = False) -> tuple[Dispatch, Any]:
    async def later() -> Reply:
        await asyncio.sleep(0)
        raise error

    def answer(command: Command, peer: Peer) -> Any:
        if is_late:
            return later()
        raise error

    made = Dispatch({10: answer}, refusals={10: MARKS})
    return made, made(Command(10), PEER)


@pytest.mark.parametrize(("error", "code", "remark"), ERRORS)
def test_every_error_becomes_a_code_with_words(error: Exception, code: int, remark: str) -> None:
    made, reply = dispatch(error)
    assert (reply.code, reply.remark) == (code, remark)
    assert made.counts[10] == made.failures[10] == 1


@pytest.mark.parametrize(("error", "code", "remark"), ERRORS)
def test_an_error_that_comes_later_does_too(error: Exception, code: int, remark: str) -> None:
    async def main() -> Reply:
        _, reply = dispatch(error, is_late=True)
        return cast(Reply, await reply)

    reply = run(main())
    assert (reply.code, reply.remark) == (code, remark)


def test_a_refusal_has_the_header_of_its_error_or_of_its_request() -> None:
    assert dispatch(NoPermission("no"))[1].header is MARKS
    assert dispatch(Marked("no"))[1].header == ForbiddenReply(forbidden_type=3)
    assert dispatch(RemoteProtocolError("x"))[1].header is None


def test_an_unknown_code_is_not_supported_in_javas_words() -> None:
    made = Dispatch({}, refusals={})
    reply = made(Command(9999), PEER)
    assert isinstance(reply, Reply)
    assert (reply.code, reply.remark) == (3, " request type 9999 not supported")
    assert made.counts[-1] == 1


def test_nothing_answered_stays_nothing() -> None:
    made = Dispatch({10: lambda command, peer: None}, refusals={})
    assert made(Command(10), PEER) is None


def test_words_about_a_long_name_are_short() -> None:
    _, reply = dispatch(NoPermission("x" * 100_000))
    assert len(reply.remark) < 3000


def running(run: Any) -> Dispatch:
    """A dispatch that answers code 10 in runs, or else by its opaque, which must not be 3."""

    def answer(command: Command, peer: Peer) -> Any:
        if command.opaque == 3:
            raise NoPermission("not 3")
        return Reply(code=command.opaque)

    return Dispatch({10: answer, 11: answer}, refusals={}, run_endpoints={10: run})


def answers(made: Dispatch, commands: Any) -> list[Any]:
    """The outcomes of all of them, as a connection asks for them."""
    outcomes: list[Any] = []
    while len(outcomes) < len(commands):
        outcomes += made.answer_first(commands[len(outcomes) :], PEER)
    return outcomes


def some(count: int) -> list[Command]:
    return [Command(10, n) for n in range(count)]


def test_what_ends_a_run_is_answered_by_itself_and_the_next_run_begins_behind_it() -> None:
    seen: list[list[int]] = []

    def run(commands: Any, peer: Peer) -> list[Any]:
        seen.append([command.opaque for command in commands])
        return [b"%d" % n for n in takewhile(lambda n: n != 3, seen[-1])]

    made = running(run)
    replies = answers(made, some(6))
    told = [reply.code if isinstance(reply, Reply) else reply for reply in replies]
    assert told == [b"0", b"1", b"2", 16, b"4", b"5"]
    assert seen == [[0, 1, 2, 3, 4, 5], [3, 4, 5], [4, 5]]
    assert (made.counts[10], made.failures[10]) == (6, 1)


def test_a_run_that_is_refused_is_not_tried_again() -> None:
    tries = 0

    def run(commands: Any, peer: Peer) -> list[Any]:
        nonlocal tries
        tries += 1
        raise DiskFull("full")

    replies = answers(running(run), some(3))
    assert [cast(Reply, reply).code for reply in replies] == [0, 1, 2]
    assert tries == 1


def test_a_run_that_fails_costs_no_request_of_another_kind() -> None:
    def run(commands: Any, peer: Peer) -> list[Any]:
        raise ZeroDivisionError

    made = running(run)
    replies = answers(made, [Command(11, 7), *some(2), Command(11, 8), Command(99)])
    assert [cast(Reply, reply).code for reply in replies] == [7, 1, 1, 8, 3]
    assert made.failures[10] == 2


def test_an_error_that_comes_later_to_one_of_a_run_is_a_code_too() -> None:
    async def late() -> Reply:
        raise ClosedError("closed")

    def run_of(commands: Any, peer: Peer) -> list[Any]:
        return [b"now", late()]

    async def main() -> None:
        first, second = answers(running(run_of), some(2))
        reply = await cast(Any, second)
        assert (first, reply.code, reply.remark) == (b"now", 14, "closed")

    run(main())


def test_what_waits_together_fails_together_each_with_its_own_answer() -> None:
    async def late() -> int:
        raise ClosedError("closed")

    def run_of(commands: Any, peer: Peer) -> SharedWait:
        return SharedWait(3, late(), lambda code: [b"never"])

    async def main() -> None:
        commands = [*some(2), Command(10, 2, flag=ONEWAY), Command(11, 9)]
        waiting, *others = answers(running(run_of), commands)
        replies = Connection().receive(await cast(Any, waiting))
        assert [(reply.opaque, reply.code) for reply in replies] == [(0, 14), (1, 14)]
        assert others[:2] == [None, None]
        assert cast(Reply, others[2]).code == 9

    run(main())
