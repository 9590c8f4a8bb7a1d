"""Replies that are counted until they are there."""

from __future__ import annotations

import asyncio
import gc

import pytest

from sprocket.base.errors import SystemBusy
from sprocket.protocol.command import Reply
from sprocket.quotas.counted import CountedReply
from sprocket.quotas.creation import check_creation
from sprocket.remoting.endpoints import Response


class Tally:
    """Counts releases, replies and creations."""

    def __init__(self) -> None:
        self.released = 0
        self.replies: list[Response] = []
        self.made: list[str] = []

    def release(self) -> None:
        self.released += 1


def counted(tally: Tally, error: Exception | None = None) -> CountedReply:
    """A reply that takes a moment, in which a topic is made."""

    async def answered() -> Response:
        await asyncio.sleep(0.01)
        check_creation("new_topics")
        if error is not None:
            raise error
        return Reply(body=b"abc")

    return CountedReply(
        answered(), release=tally.release, spend=tally.replies.append, check=tally.made.append
    )


async def finished(reply: CountedReply) -> Response:
    return await reply


def test_a_reply_is_counted_once() -> None:
    tally = Tally()
    asyncio.run(finished(counted(tally)))
    gc.collect()
    assert (tally.released, len(tally.replies), tally.made) == (1, 1, ["new_topics"])


def test_an_error_releases_and_sends_nothing() -> None:
    tally = Tally()
    with pytest.raises(SystemBusy):
        asyncio.run(finished(counted(tally, SystemBusy("no"))))
    assert (tally.released, tally.replies) == (1, [])


def test_a_reply_that_nobody_waits_for_is_released(recwarn: pytest.WarningsRecorder) -> None:
    tally = Tally()
    reply = counted(tally)
    del reply
    gc.collect()
    assert tally.released == 1
    assert not recwarn.list


def test_one_that_is_given_up_is_released() -> None:
    async def main(tally: Tally) -> None:
        task = asyncio.create_task(finished(counted(tally)))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    tally = Tally()
    asyncio.run(main(tally))
    assert (tally.released, tally.replies) == (1, [])


def test_creations_of_other_tasks_are_not_counted() -> None:
    async def other() -> None:
        for _ in range(10):
            check_creation("new_topics")
            await asyncio.sleep(0.001)

    async def main(tally: Tally) -> None:
        await asyncio.gather(other(), finished(counted(tally)))

    tally = Tally()
    asyncio.run(main(tally))
    assert tally.made == ["new_topics"]
