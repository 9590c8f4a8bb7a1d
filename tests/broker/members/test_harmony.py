"""Groups whose members disagree, and clients of one name, are told: log and members hear of it."""

from __future__ import annotations

import asyncio
import logging

import pytest

from sprocket.protocol.requests.client import Unregister
from tests.broker.members.test_membership import another
from tests.broker.parts import Asker, play

BEAT_SECONDS = 30


def told(caplog: pytest.LogCaptureFixture, words: str) -> list[str]:
    texts = [each.getMessage() for each in caplog.records if each.levelno >= logging.WARNING]
    return [each for each in texts if words in each]


@pytest.mark.parametrize(
    ("second", "words"),
    [
        ({"topics": {"U": "*"}}, "c1 subscribes T by '*', c2 U by '*'"),
        ({"topics": {"T": "a"}}, "c1 subscribes T by '*', c2 T by 'a'"),
        ({"topics": {"T": "*", "U": "*"}}, "c1 subscribes nothing else, c2 U by '*'"),
        (
            {"topics": {"T": "*"}, "model": "BROADCASTING"},
            "c1 consumes as push CLUSTERING, c2 as push BROADCASTING",
        ),
    ],
)
def test_members_that_disagree_are_told_once_then_rarely_and_when_they_agree(
    second: dict[str, object], words: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def test(asker: Asker) -> None:
        async with another(asker) as other:
            assert (await asker.beat("g", topics={"T": "*"})).remark is None
            for _ in range(3600 // BEAT_SECONDS):
                reply = await other.beat("g", client_id="c2", **second)  # type: ignore[arg-type]
                assert words in (reply.remark or "")
                reply = await asker.beat("g", topics={"T": "*"})
                assert words in (reply.remark or ""), "both hear of it"
                await asyncio.sleep(BEAT_SECONDS)
            assert 2 <= len(told(caplog, words)) <= 8
            assert not told(caplog, "agree again")
            reply = await other.beat("g", client_id="c2", topics={"T": "*"})
            assert reply.remark is None
            assert len(told(caplog, "agree again")) == 1

    play(test)


def test_a_member_that_leaves_takes_the_disagreement_along(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def test(asker: Asker) -> None:
        await asker.beat("g", topics={"T": "*"})
        async with another(asker) as other:
            await other.beat("g", client_id="c2", topics={"T": "a"})
            await other.call(Unregister(client_id="c2", consumer_group="g"))
            assert len(told(caplog, "agree again")) == 1
            assert (await asker.beat("g", topics={"T": "*"})).remark is None

    play(test)


def test_groups_that_agree_and_clients_that_reconnect_are_not_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def test(asker: Asker) -> None:
        await asker.beat("g", topics={"T": "*"})
        async with another(asker) as other:
            await asyncio.sleep(1)
            for _ in range(5):  # the first connection is dead, and nobody has noticed
                reply = await other.beat("g", topics={"T": "*"})
                assert reply.remark is None
                await asyncio.sleep(10)
        assert not told(caplog, "disagree")

    play(test)


def test_two_living_clients_of_one_name_are_told(caplog: pytest.LogCaptureFixture) -> None:
    async def test(asker: Asker) -> None:
        async with another(asker) as other:
            for _ in range(20):
                mine = await asker.beat("g", topics={"T": "*"})
                await asyncio.sleep(1)
                theirs = await other.beat("g", topics={"T": "*"})
                await asyncio.sleep(BEAT_SECONDS)
            for reply in (mine, theirs):
                assert "call themselves c1" in (reply.remark or "")
            assert 1 <= len(told(caplog, "needs an instance name of its own")) <= 6
        await asyncio.sleep(1)
        assert (await asker.beat("g", topics={"T": "*"})).remark is None
        assert len(told(caplog, "only one client of g is c1 now")) == 1

    play(test)
