"""The requests of one peer, and the time that its reads take."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Awaitable, Sequence
from typing import Any, cast

import pytest

from sprocket.protocol.command import Command, Reply
from sprocket.remoting.endpoints import BatchEndpoint, Endpoint, one_by_one
from sprocket.remoting.requests import PeerRequests
from sprocket.remoting.turns import ITERATION_SECONDS, Turns
from sprocket.remoting.writer import FrameWriter
from tests.support import run

pytestmark = pytest.mark.usefixtures("either_loop")


def made(
    changes: list[bool],
    seen: list[int],
    endpoint: Endpoint | None = None,
    together: BatchEndpoint | None = None,
) -> PeerRequests:
    """The requests of a peer that notes what is handled, and each change of `has_enough`."""

    def answer(command: Command, peer: Any) -> Reply:
        seen.append(command.opaque)
        return Reply()

    loop = asyncio.get_running_loop()
    requests = PeerRequests(
        cast(Any, None),
        together or one_by_one(endpoint or answer),
        FrameWriter(loop, 1 << 20),
        Turns(loop),
        tasks_max=10,
        unread_bytes_max=1 << 20,
        waits_for_reader=True,
        on_change=lambda: changes.append(requests.has_enough),
        read=lambda data: requests.receive([Command(1, data[0])] if data else []),
    )
    return requests


def test_a_peer_whose_reads_take_long_to_decode_is_not_read_until_its_turn() -> None:
    # Replies that nobody waits for need no answer, but decoding 8 MiB of them takes 0.15 s, and
    # libuv hands over so many in one iteration.
    async def main() -> None:
        changes: list[bool] = []
        requests = made(changes, [])
        requests.count_decoding(ITERATION_SECONDS / 2)
        assert not requests.has_enough
        requests.count_decoding(ITERATION_SECONDS)
        assert requests.has_enough
        assert not requests.is_busy
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert changes == [True, False]

    run(main())


def test_what_came_with_a_long_read_is_handled_once_in_its_order() -> None:
    async def main() -> None:
        seen: list[int] = []
        requests = made([], seen)
        requests.count_decoding(ITERATION_SECONDS)
        requests.receive([Command(1, 1), Command(1, 2)])
        requests.receive([Command(1, 3)])
        assert not seen
        for _ in range(3):
            await asyncio.sleep(0)
        assert seen == [1, 2, 3]
        assert not requests.has_enough

    run(main())


def test_fewer_requests_than_a_run_are_handled_once_beside_a_modest_peer() -> None:
    # Once all were handled, the endpoint was asked for none of them until the turn was over: in
    # virtual time, for ever.
    async def main() -> None:
        asked: list[int] = []

        def answer(commands: Sequence[Command], peer: Any) -> list[Reply]:
            asked.append(len(commands))
            return [Reply() for _ in commands[:1]]

        modest, many = made([], []), made([], [], together=answer)
        turns = many._turns
        for _ in range(200):
            turns.count(modest, 1, 0.0)
            turns.count(many, 64, asyncio.get_running_loop().time())
        turns.count(modest, 1, asyncio.get_running_loop().time())
        many.receive([Command(1, number) for number in range(5)])
        while many.is_busy:  # noqa: ASYNC110  (as many iterations as it takes)
            await asyncio.sleep(0)
        assert all(asked)
        assert len(asked) == 5

    run(main())


def test_a_request_that_is_cancelled_at_once_has_begun_with_all_that_is_inside_of_it(
    recwarn: pytest.WarningsRecorder,
) -> None:
    # A coroutine that never runs cannot undo what was decided before it was made, and is reported
    # as one that nobody awaited.
    async def main() -> None:
        undone: list[str] = []

        async def inner() -> Reply:
            try:
                await asyncio.Event().wait()
            finally:
                undone.append("inner")
            return Reply()

        async def outer(outcome: Awaitable[Reply]) -> Reply:
            return await outcome

        requests = made([], [], lambda command, peer: outer(inner()))
        requests.receive([Command(1, 1)])
        requests.cancel()
        await asyncio.wait(requests.tasks)
        assert undone == ["inner"]

    gc.collect()
    recwarn.clear()  # of what tests before this one left
    run(main())
    gc.collect()
    assert not recwarn.list


def test_requests_whose_turn_has_not_come_when_the_peer_hangs_up_are_closed_with_all_inside(
    recwarn: pytest.WarningsRecorder,
) -> None:
    async def main() -> None:
        begun: list[int] = []

        async def inner(number: int) -> Reply:
            begun.append(number)
            time.sleep(ITERATION_SECONDS * 2)  # noqa: ASYNC251  (it leaves the others no time)
            await asyncio.Event().wait()
            return Reply()

        async def outer(outcome: Awaitable[Reply]) -> Reply:
            return await outcome

        requests = made([], [], lambda command, peer: outer(outer(inner(command.opaque))))
        requests.receive([Command(1, number) for number in range(5)])
        requests.cancel()
        await asyncio.wait(requests.tasks)
        assert begun == [0, 1]

    gc.collect()
    recwarn.clear()  # of what tests before this one left
    run(main())
    gc.collect()
    assert not recwarn.list
