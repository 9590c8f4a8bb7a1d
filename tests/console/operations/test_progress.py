"""Groups are reset, skipped and copied; dead letters are listed and sent back."""

from __future__ import annotations

from typing import Any

import pytest

from sprocket.base.errors import GroupNotFound, UsageError
from sprocket.console.operations.values import ChangeReport, time_of
from sprocket.testing.cluster import Cluster
from tests.console.parts import Operating, operated


async def filled(do: Operating, *, group: str = "billing") -> None:
    """A topic of two queues with five messages, and a group."""
    await do("topics.create", topic="orders", queues=2)
    await do("groups.create", group=group)
    for number in range(5):
        await do("messages.send", topic="orders", body=f"m{number}")


async def committed(do: Operating, group: str = "billing") -> int:
    """The sum of a group's offsets."""
    lag = await do("groups.lag", group=group)
    return sum(each.committed for each in lag.queues.items)


def moves(report: ChangeReport) -> list[tuple[Any, Any]]:
    return [(each.before, each.after) for each in report.changes]


@pytest.mark.parametrize("where", [{"to": "last"}, {"to": "first"}, {"at": time_of(1)}])
def test_a_trial_of_a_reset_says_what_the_reset_does(where: dict[str, Any]) -> None:
    async def test(do: Operating, cluster: Cluster) -> None:
        await filled(do)
        await do("groups.skip", group="billing", topic="orders")
        asked = {"group": "billing", "topic": "orders", **where}
        tried = await do("groups.reset", **asked, dry_run=True)
        assert await committed(do) == 5
        done = await do("groups.reset", **asked)
        assert moves(done) == moves(tried)
        assert await committed(do) == (5 if where == {"to": "last"} else 0)

    operated(test)


def test_one_queue_goes_to_an_offset() -> None:
    async def test(do: Operating, cluster: Cluster) -> None:
        await filled(do)
        await do("groups.skip", group="billing", topic="orders")
        asked = {
            "group": "billing", "topic": "orders", "broker": "broker-0", "queue": 0, "offset": 1,
        }  # fmt: skip
        tried = await do("groups.reset", **asked, dry_run=True)
        done = await do("groups.reset", **asked)
        assert moves(done) == moves(tried)
        assert [after for _, after in moves(done)] == [1]

    operated(test)


@pytest.mark.parametrize(
    "where",
    [
        {},
        {"to": "last", "offset": 1},
        {"offset": 1},
        {"to": "last", "queue": 0},
        {"to": "last", "broker": "broker-0"},
        {"broker": "broker-0", "queue": 9, "offset": 0},
        {"broker": "broker-0", "queue": 0, "offset": 99},
    ],
)
def test_a_reset_to_nowhere_or_to_two_places_is_refused(where: dict[str, Any]) -> None:
    async def test(do: Operating, cluster: Cluster) -> None:
        await filled(do)
        with pytest.raises(UsageError):
            await do("groups.reset", group="billing", topic="orders", **where, dry_run=True)

    operated(test)


def test_skipping_leaves_out_everything_and_copying_gives_it_to_another() -> None:
    async def test(do: Operating, cluster: Cluster) -> None:
        await filled(do)
        with pytest.raises(GroupNotFound):
            await do("groups.skip", group="nobody", topic="orders")
        await do("groups.skip", group="billing", topic="orders", dry_run=True)
        await do("groups.skip", group="billing", topic="orders")
        assert (await do("groups.lag", group="billing")).lag == 0
        await do("groups.create", group="other")
        asked = {"group": "billing", "target": "other", "topic": "orders"}
        tried = await do("groups.clone", **asked, dry_run=True)
        assert [after for _, after in moves(tried)] == [
            after for _, after in moves(await do("groups.clone", **asked))
        ]
        assert await committed(do, "other") == 5

    operated(test)


async def bury(do: Operating) -> None:
    """Makes two dead letters of the group."""
    await do("topics.create", topic="%DLQ%billing", queues=1)
    await do("topics.create", topic="%RETRY%billing", queues=1)
    for number in range(2):
        await do("messages.send", topic="%DLQ%billing", body=f"dead {number}", keys=[f"k{number}"])


def test_dead_letters_are_listed_and_go_back_to_their_group() -> None:
    async def test(do: Operating, cluster: Cluster) -> None:
        await filled(do)
        assert (await do("dead_letters.list", group="billing")).messages == []
        with pytest.raises(GroupNotFound):
            await do("dead_letters.list", group="nobody")
        await bury(do)
        first, second = (await do("dead_letters.list", group="billing")).messages
        assert (first.body, second.keys) == ("dead 0", ["k1"])
        tried = await do("dead_letters.resend", group="billing", all=True, dry_run=True)
        assert [each.after for each in tried.changes] == [None, None]
        one = await do("dead_letters.resend", group="billing", ids=[second.offset_id])
        assert one.changes[0].after["topic"] == "%RETRY%billing"
        await do("dead_letters.resend", group="billing", all=True)
        back = await do("messages.by_time", topic="%RETRY%billing")
        assert [each.body for each in back.messages] == ["dead 1", "dead 0", "dead 1"]
        assert len((await do("dead_letters.list", group="billing")).messages) == 2

    operated(test)


def test_what_is_no_dead_letter_of_the_group_does_not_go_to_it() -> None:
    async def test(do: Operating, cluster: Cluster) -> None:
        await filled(do)
        (message, *_) = (await do("messages.tail", topic="orders")).messages
        with pytest.raises(UsageError, match="no dead letter of billing"):
            await do("dead_letters.resend", group="billing", ids=[message.offset_id])
        for wrong in ({}, {"ids": ["x"], "all": True}):
            with pytest.raises(UsageError, match="ids, or all"):
                await do("dead_letters.resend", group="billing", **wrong)

    operated(test)
