"""A worker outlasts servers that are away, and learns of what cannot be mended."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from sprocket.base.errors import NoPermission, RequestNotSupported
from sprocket.integrations.queues.queue_receiver import QueueReceiver
from tests.integrations.queues.test_task_queues import Workers, play


def test_a_worker_goes_on_when_a_broker_is_back_and_loses_nothing() -> None:
    async def main(workers: Workers) -> None:
        one = await workers.join("one")
        receiver = await one.call(_made(one.queues))
        (broker,) = workers.cluster.brokers
        await one.send(b"before")
        broker.kill()
        began = asyncio.get_running_loop().time()
        assert [await one.call(receiver.receive(4)) for _ in range(4)] == [[], [], [], []]
        assert asyncio.get_running_loop().time() - began >= 0.2 + 0.4 + 0.8 + 1.6
        await broker.start()
        await asyncio.sleep(5.0)
        await one.send(b"after")
        found: list[Any] = []
        while len(found) < 2:
            found += await one.call(receiver.receive(4))
        assert sorted(each.body for each in found) == [b"after", b"before"]
        await one.call(one.queues.close())

    play(main)


@pytest.mark.parametrize("refusal", [NoPermission, RequestNotSupported])
def test_a_refusal_for_good_is_raised(
    refusal: type[NoPermission | RequestNotSupported], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main(workers: Workers) -> None:
        one = await workers.join("one")
        receiver = await one.call(_made(one.queues))

        async def refused(*_: Any) -> Any:
            raise refusal("no")

        monkeypatch.setattr(one.queues, "receive", refused)
        with pytest.raises(refusal):
            await one.call(receiver.receive(1))
        await one.call(one.queues.close())

    play(main)


async def _made(queues: Any) -> QueueReceiver:
    return QueueReceiver(queues, "work")
