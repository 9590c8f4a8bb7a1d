"""Single consumers, asked through a node."""

from __future__ import annotations

import pytest

from sprocket.admin import consumers, groups, messages
from sprocket.base.errors import ConsumerOffline
from sprocket.message.queue import QueueId
from tests.admin.parts import shop, until
from tests.support import run


def test_members_tell_what_they_hold_and_consume_a_message_directly() -> None:
    async def story() -> None:
        async with shop() as there:
            caller = there.caller
            first, _ = await there.sell(b"1", b"2")
            async with there.consumer() as consumer:
                await until(lambda: len(there.seen) == 2)
                online = await groups.online(caller, "g")
                (member,) = online.members
                assert (member.client_id, member.language) == (consumer.client_id, "PYTHON")
                assert member.brokers == ["broker-a"]
                assert online.subscriptions == {"orders": "*", "%RETRY%g": "*"}
                assert (online.consume_type, online.message_model, online.consume_from) == (
                    "CONSUME_PASSIVELY", "CLUSTERING", "CONSUME_FROM_FIRST_OFFSET",
                )  # fmt: skip
                held = await consumers.owners(caller, "g")
                assert held[QueueId("orders", "broker-a", 0)] == member.client_id
                info = await consumers.running(caller, "g", member.client_id, with_stacks=True)
                assert "task" in (info.jstack or "")
                there.fails.add(b"1")
                message = await messages.view(caller, first)
                done = await consumers.consume_directly(caller, "g", message)
                assert (done.client_id, done.result) == (member.client_id, "CR_LATER")
                assert [message.body for message in there.seen] == [b"1", b"2", b"1"]
                with pytest.raises(ConsumerOffline):
                    await consumers.running(caller, "g", "somebody")
            with pytest.raises(ConsumerOffline):
                await groups.online(caller, "g")

    run(story())
