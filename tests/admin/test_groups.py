"""What an operator does about consumer groups, against a node."""

from __future__ import annotations

import pytest

from sprocket.admin import groups
from sprocket.base.errors import GroupNotFound, UsageError
from tests.admin.test_topics import operating
from tests.support import run


def test_a_group_is_made_listed_and_deleted() -> None:
    async def story() -> None:
        async with operating() as (_, caller):
            assert await groups.create(caller, "billing", retry_max_times=3) == ["broker-a"]
            assert "billing" in await groups.names(caller)
            assert (await groups.settings(caller, "billing"))["broker-a"].retry_max_times == 3
            await groups.delete(caller, "billing")
            assert "billing" not in await groups.names(caller)
            await groups.delete(caller, "billing")
            with pytest.raises(GroupNotFound):
                await groups.settings(caller, "billing")

    run(story())


def test_a_name_that_cannot_be_is_refused() -> None:
    async def story() -> None:
        async with operating() as (_, caller):
            with pytest.raises(UsageError, match="illegal characters"):
                await groups.create(caller, "no spaces")

    run(story())
