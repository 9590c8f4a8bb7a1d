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
            wanted = groups.GroupSettings(retry_max_times=3)
            (made,) = await groups.create(caller, "billing", wanted=wanted)
            assert (made.broker, made.before) == ("broker-a", None)
            assert "billing" in await groups.names(caller)
            assert (await groups.settings(caller, "billing"))["broker-a"].retry_max_times == 3
            await groups.delete(caller, "billing")
            assert "billing" not in await groups.names(caller)
            await groups.delete(caller, "billing")
            with pytest.raises(GroupNotFound):
                await groups.settings(caller, "billing")

    run(story())


def test_what_is_not_named_of_a_group_stays() -> None:
    async def story() -> None:
        async with operating() as (_, caller):
            with pytest.raises(GroupNotFound):
                await groups.update(caller, "ledger", wanted=groups.GroupSettings(3))
            first = groups.GroupSettings(100, 2, True, False, False)
            await groups.create(caller, "ledger", wanted=first)
            (one,) = await groups.update(caller, "ledger", wanted=groups.GroupSettings(3))
            (two,) = await groups.create(caller, "ledger")
            assert two.before == two.after == one.after
            found = (await groups.settings(caller, "ledger"))["broker-a"]
            assert (found.retry_max_times, found.retry_queue_nums) == (3, 2)
            assert found.consume_message_orderly
            assert not any((found.consume_enable, found.consume_broadcast_enable))

    run(story())


def test_a_name_that_cannot_be_is_refused() -> None:
    async def story() -> None:
        async with operating() as (_, caller):
            with pytest.raises(UsageError, match="illegal characters"):
                await groups.create(caller, "no spaces")

    run(story())
