"""Reading a topic's messages, against a node."""

from __future__ import annotations

import pytest

from sprocket.admin import reading
from sprocket.base.errors import TopicNotFound
from tests.admin.parts import shop
from tests.support import run


def test_all_messages_are_read_or_those_of_a_time() -> None:
    async def story() -> None:
        async with shop() as there:
            bodies = [b"%d" % number for number in range(70)]
            await there.sell(*bodies)
            found = [each async for each in reading.messages(there.caller, "orders")]
            assert [each.body for each in found] == bodies
            begin, end = found[10].stored_ms, found[60].stored_ms
            expected = [each.body for each in found if begin <= each.stored_ms < end]
            some = reading.messages(there.caller, "orders", begin_ms=begin, end_ms=end)
            assert [each.body async for each in some] == expected
            with pytest.raises(TopicNotFound):
                [each async for each in reading.messages(there.caller, "nothing")]

    run(story())
