from __future__ import annotations

import asyncio

from sprocket.client.fetching.pauses import Pauses
from sprocket.message.queue import QueueId
from tests.client.fakes import play

ONE, TWO = QueueId("news", "a", 0), QueueId("orders", "a", 0)


def test_each_pause_is_taken_back_by_itself() -> None:
    pauses = Pauses()
    pauses.pause_topic("news")
    pauses.pause_queues([ONE, TWO])
    pauses.resume_topic("news")
    assert ONE in pauses
    pauses.resume_queues([ONE])
    assert ONE not in pauses
    assert TWO in pauses
    pauses.pause_all()
    assert ONE in pauses
    pauses.resume_all()
    assert TWO not in pauses


def test_who_waits_goes_on_only_when_no_pause_is_left() -> None:
    async def main() -> None:
        pauses = Pauses()
        pauses.pause_topic("news")
        pauses.pause_queues([ONE])
        waiting = asyncio.ensure_future(pauses.wait_resumed(ONE))
        pauses.resume_topic("news")
        await asyncio.sleep(1)
        assert not waiting.done()
        pauses.resume_queues([ONE])
        await waiting
        await pauses.wait_resumed(TWO)

    play(main)


def test_whether_anything_rests_is_known_at_a_glance() -> None:
    pauses = Pauses()
    queue = QueueId("orders", "a", 0)
    assert not pauses.is_any
    pauses.pause_queues([queue])
    pauses.pause_topic("news")
    pauses.resume_queues([queue])
    assert pauses.is_any
    pauses.resume_topic("news")
    assert not pauses.is_any
    pauses.pause_all()
    assert pauses.is_any
    pauses.resume_all()
    assert not pauses.is_any
