"""Priorities of task queues on a real broker."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from sprocket.admin import topic_changes
from sprocket.base.errors import ReplyError, SprocketError
from sprocket.integrations.queues.options import QueueOptions
from sprocket.integrations.queues.task_queues import TaskQueues
from sprocket.message.popped_message import PoppedMessage
from sprocket.testing.node_thread import NodeThread
from tests.support import LONGEST, run

pytestmark = pytest.mark.process


@pytest.fixture
def warnings(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    """What is logged, also after a worker of Celery in this process had its way with logging."""
    caplog.set_level(logging.WARNING, "sprocket.integrations")
    return caplog


async def received(queues: TaskQueues, topic: str, count: int) -> list[PoppedMessage]:
    found: list[PoppedMessage] = []
    async with asyncio.timeout(LONGEST):
        while len(found) < count:
            found += await queues.receive(topic, 8, 1_000)
    await queues.acknowledge(found)
    return found


def test_what_is_more_urgent_is_received_first(own_rocketmq: NodeThread) -> None:
    async def scenario() -> None:
        options = QueueOptions(max_priority=3)
        async with TaskQueues(own_rocketmq.nameservers, options) as queues:
            await queues.declare("urgent")
            for priority in (-1, 2, 3, 0, 9, 1):
                await queues.send("urgent", b"%d" % priority, priority=priority)
            found = await received(queues, "urgent", 6)
            assert [each.body for each in found] == [b"3", b"9", b"2", b"1", b"-1", b"0"]

    run(scenario())


def test_a_task_that_waits_keeps_its_priority_also_in_hops(own_rocketmq: NodeThread) -> None:
    async def scenario() -> None:
        options = QueueOptions(max_priority=3, delay_max_ms=1_000)
        async with TaskQueues(own_rocketmq.nameservers, options) as queues:
            await queues.declare("later")
            now_ms = queues.now_ms()
            for priority, wait_ms in ((2, 500), (3, 2_500), (0, 500)):
                await queues.send("later", b"x", due_ms=now_ms + wait_ms, priority=priority)
            found = await received(queues, "later", 3)
            assert sorted(each.queue.number for each in found) == [0, 2, 3]
            assert found[-1].queue.number == 3

    run(scenario())


def test_a_topic_without_priorities_is_used_as_it_is_and_logged_once(
    own_rocketmq: NodeThread, warnings: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        async with TaskQueues(own_rocketmq.nameservers) as plain:
            await plain.declare("plain")
        async with TaskQueues(own_rocketmq.nameservers, QueueOptions(max_priority=9)) as queues:
            for _ in range(2):
                await queues.declare("plain")
            await queues.send("plain", b"one", priority=9)
            assert [each.body for each in await received(queues, "plain", 1)] == [b"one"]

    run(scenario())
    (said,) = warnings.messages
    assert said.endswith("sprocket topic update plain --message-type PRIORITY --queues 10")


@pytest.mark.parametrize("is_refused", [True, False])
def test_where_brokers_know_no_priorities_the_topic_is_like_any_other(
    own_rocketmq: NodeThread,
    warnings: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    is_refused: bool,
) -> None:
    create = topic_changes.create

    async def old(*args: Any, wanted: topic_changes.TopicSettings, **named: Any) -> Any:
        """RocketMQ's broker before 5.4, or one that is away."""
        if wanted.attributes:
            raise ReplyError("value is not in set") if is_refused else SprocketError("away")
        return await create(*args, wanted=wanted, **named)

    monkeypatch.setattr(topic_changes, "create", old)

    async def scenario() -> None:
        options = QueueOptions(max_priority=2)
        async with TaskQueues(own_rocketmq.nameservers, options) as queues:
            await queues.declare("old")
            assert await queues.exists("old") is is_refused

    run(scenario())
    (said,) = warnings.messages
    assert ("has no priorities" in said) is is_refused
