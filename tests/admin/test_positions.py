"""Where groups are, against a node."""

from __future__ import annotations

import pytest

from sprocket.admin import positions
from sprocket.base.errors import GroupNotFound, ReplyError, TopicNotFound, UsageError
from sprocket.message.queue import QueueId
from tests.admin.parts import shop, until
from tests.support import run

QUEUE = QueueId("orders", "broker-a", 0)


def test_a_group_falls_behind_is_moved_and_copied() -> None:
    async def story() -> None:
        async with shop() as there:
            await there.sell(b"1", b"2", b"3")
            async with there.consumer():
                await until(lambda: len(there.seen) == 3)
            await there.sell(b"4")
            caller = there.caller
            known = await positions.lag(caller, "g", topic="orders")
            (queue,) = known.queues
            assert (queue.committed, queue.end, queue.behind, known.behind) == (3, 4, 1, 1)
            assert queue.consumed_ms > 0
            assert known.per_second > 0
            assert {each.topic for each in (await positions.lag(caller, "g")).queues} == {
                "orders", "%RETRY%g",
            }  # fmt: skip
            assert await positions.reset(caller, "g", "orders") == {QUEUE: 0}
            last = await positions.reset(caller, "g", "orders", at_ms=positions.LAST)
            assert last == {QUEUE: 4}
            assert await positions.reset(caller, "g", "orders", queue=QUEUE, offset=2) == {QUEUE: 2}
            assert await positions.clone(caller, "g", "h", topic="orders") == {QUEUE: 2}
            there.seen.clear()
            async with there.consumer():
                await until(lambda: len(there.seen) == 2)
            assert [message.body for message in there.seen] == [b"3", b"4"]

    run(story())


def test_what_cannot_be_moved_is_refused() -> None:
    async def story() -> None:
        async with shop() as there:
            caller = there.caller
            with pytest.raises(UsageError, match="an offset needs a queue"):
                await positions.reset(caller, "g", "orders", offset=1)
            with pytest.raises(TopicNotFound):
                await positions.reset(caller, "g", "nothing")
            with pytest.raises(GroupNotFound):
                await positions.reset(caller, "nobody", "orders")
            with pytest.raises(UsageError, match="no broker holds"):
                await positions.reset(caller, "g", "orders", queue=QUEUE._replace(broker="b"))
            async with there.consumer():
                pass
            with pytest.raises(ReplyError, match="not in consume queue range"):
                await positions.reset(caller, "g", "orders", queue=QUEUE, offset=1)
            assert (await positions.lag(caller, "nobody")).queues == []

    run(story())
