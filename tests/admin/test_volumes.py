"""How much goes through, against a node."""

from __future__ import annotations

import pytest

from sprocket.admin import volumes
from sprocket.base.errors import TopicNotFound
from tests.admin.parts import shop, until
from tests.support import run


def test_what_came_in_and_what_went_out_to_each_group() -> None:
    async def story() -> None:
        async with shop() as there:
            quiet = await volumes.of_topic(there.caller, "orders")
            assert [(each.group, each.day) for each in quiet] == [(None, 0)]
            await there.sell(b"1", b"2", b"3")
            async with there.consumer():
                await until(lambda: len(there.seen) == 3)
            came, went = await volumes.of_topic(there.caller, "orders")
            assert (came.group, came.minute, came.hour, came.day) == (None, 3, 3, 3)
            assert came.per_second > 0
            assert (went.group, went.day) == ("g", 3)
            with pytest.raises(TopicNotFound):
                await volumes.of_topic(there.caller, "nothing")

    run(story())
