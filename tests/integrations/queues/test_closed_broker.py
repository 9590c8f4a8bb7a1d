"""Task queues at a broker with TLS and users, by `QueueOptions.client`, as all frameworks do."""

from __future__ import annotations

from pathlib import Path

import pytest

from sprocket.base.errors import SprocketError
from sprocket.integrations.queues.options import QueueOptions
from sprocket.integrations.queues.task_queues import TaskQueues
from tests.certificates import Authority
from tests.integrations.closed import closed_node
from tests.support import run

pytestmark = pytest.mark.process


def test_a_user_with_pub_and_sub_alone_sends_and_works(
    authority: Authority, tmp_path: Path
) -> None:
    with closed_node(authority, tmp_path, ["work"]) as node:

        async def main() -> None:
            options = QueueOptions(client=node.client)
            async with TaskQueues(node.names, options) as queues:
                await queues.declare("work")
                for body in (b"one", b"two", b"three"):
                    await queues.send("work", body)
                assert await queues.count("work") == 3
                first, second, third = [
                    (await queues.receive("work", 1, 60_000))[0] for _ in range(3)
                ]
                await queues.acknowledge([first])
                await queues.bury(second)
                await queues.give_back([third])
                (again,) = await queues.receive("work", 1, 60_000)
                assert again.body == third.body
                await queues.acknowledge([again])
            for wrong in ({"secret_key": "another"}, {"tls": False}):
                options = QueueOptions(client={**node.client, "call_timeout_ms": 5_000, **wrong})
                async with TaskQueues(node.names, options) as queues:
                    with pytest.raises(SprocketError):
                        await queues.send("work", b"refused")

        run(main())
