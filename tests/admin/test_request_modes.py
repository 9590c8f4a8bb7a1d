from __future__ import annotations

import pytest

from sprocket.admin import groups, request_modes
from sprocket.admin.topic_changes import create
from sprocket.base.errors import TopicNotFound, UsageError
from tests.admin.test_topics import operating
from tests.support import run


def test_a_mode_is_set_and_shown() -> None:
    async def story() -> None:
        async with operating() as (_, caller):
            await create(caller, "orders")
            with pytest.raises(TopicNotFound):
                await request_modes.set_mode(caller, "nothing", "billing", "POP")
            await groups.create(caller, "billing")
            assert await request_modes.modes(caller, "orders", "billing") == {"broker-a": None}
            done = await request_modes.set_mode(caller, "orders", "billing", "POP", shared=2)
            assert done == ["broker-a"]
            found = (await request_modes.modes(caller, "orders", "billing"))["broker-a"]
            assert found is not None
            assert (found.mode, found.pop_share_queue_num) == ("POP", 2)
            with pytest.raises(UsageError):
                await request_modes.set_mode(caller, "no topic!", "billing", "POP")

    run(story())
