"""Messages are found, read, sent, and sent again."""

from __future__ import annotations

import asyncio
import tracemalloc
from collections.abc import AsyncGenerator
from datetime import UTC, datetime, timedelta

import pytest

from sprocket.base.errors import QueryNotFound, TopicNotFound, UsageError
from sprocket.console.operations.messages import taken_of
from sprocket.message.message import StoredMessage
from sprocket.testing.cluster import Cluster
from tests.console.operations.test_message_facts import stored
from tests.console.parts import Operating, operated


async def three(do: Operating) -> list[str]:
    """Sends three messages a virtual second apart; returns their offset ids."""
    await do("topics.create", topic="orders", queues=2)
    ids = []
    for number in range(3):
        report = await do(
            "messages.send", topic="orders", body=f"m{number}", keys=[f"k{number}"], tag="t",
            properties={"n": str(number)},
        )  # fmt: skip
        ids.append(report.changes[0].after["offset_id"])
        await asyncio.sleep(1.001)
    return ids


def test_a_message_is_found_by_each_of_its_marks() -> None:
    async def test(do: Operating, cluster: Cluster) -> None:
        ids = await three(do)
        (found,) = (await do("messages.get", id=ids[1])).messages
        assert (found.body, found.keys, found.tag, found.offset_id) == ("m1", ["k1"], "t", ids[1])
        unique = found.message_id
        for name, asked in (
            ("messages.get", {"id": unique, "topic": "orders"}),
            ("messages.by_key", {"topic": "orders", "key": "k1"}),
            ("messages.journey", {"topic": "orders", "id": unique}),
            (
                "messages.by_offset",
                {"topic": "orders", "broker": found.broker, "queue": found.queue,
                 "offset": found.offset, "limit": 1},
            ),
            (
                "messages.by_time",
                {"topic": "orders", "since": found.stored_at,
                 "until": found.stored_at + timedelta(milliseconds=500)},
            ),
        ):  # fmt: skip
            (again,) = (await do(name, **asked)).messages
            assert again.offset_id == ids[1], name
        with pytest.raises(QueryNotFound):
            await do("messages.get", id="0" * 32, topic="orders")
        with pytest.raises(UsageError, match="offset id"):
            await do("messages.get", id="nonsense")

    operated(test)


def test_the_tail_is_the_newest_of_all_queues() -> None:
    async def test(do: Operating, cluster: Cluster) -> None:
        await three(do)
        for limit, bodies in ((1, ["m2"]), (2, ["m1", "m2"]), (100, ["m0", "m1", "m2"])):
            found = await do("messages.tail", topic="orders", limit=limit)
            assert [each.body for each in found.messages] == bodies

    operated(test, brokers=2)


def test_what_an_answer_cannot_hold_comes_in_the_next() -> None:
    async def test(do: Operating, cluster: Cluster) -> None:
        await do("topics.create", topic="orders", queues=1)
        for _ in range(6):
            await do("messages.send", topic="orders", body="x" * (1 << 20))
        asked = {"topic": "orders", "broker": "broker-0", "queue": 0, "body_bytes": 1 << 20}
        page = await do("messages.by_offset", **asked)
        assert (len(page.messages), page.next_offset) == (3, 3)
        page = await do("messages.by_offset", **asked, offset=3)
        assert (len(page.messages), page.next_offset) == (3, None)
        cut = await do("messages.by_time", topic="orders", body_bytes=1 << 20)
        assert (len(cut.messages), cut.is_cut) == (3, True)
        whole = await do("messages.by_time", topic="orders", body_bytes=10)
        assert (len(whole.messages), whole.is_cut) == (6, False)

    operated(test)


def test_bodies_are_cut_as_they_come_and_not_kept_whole() -> None:
    async def found() -> AsyncGenerator[StoredMessage, None]:
        for _ in range(40):
            yield stored(b"x" * (1 << 20))

    async def main() -> None:
        tracemalloc.start()
        try:
            taken, is_cut = await taken_of(found(), 100, 4)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert ([each.body for each in taken], is_cut) == (["xxxx"] * 40, False)
        assert peak < 5 << 20

    asyncio.run(main())


def test_a_message_is_sent_and_sent_again_only_if_it_is_no_trial() -> None:
    async def test(do: Operating, cluster: Cluster) -> None:
        with pytest.raises(TopicNotFound):
            await do("messages.send", topic="orders", body="x")
        (first, *_) = await three(do)
        await do("messages.send", topic="orders", body_base64="AAE=", dry_run=True)
        await do("messages.resend", id=first, dry_run=True)
        assert len((await do("messages.by_time", topic="orders")).messages) == 3
        await do("messages.resend", id=first)
        *_, last = (await do("messages.by_time", topic="orders")).messages
        assert (last.body, last.keys, last.properties["n"]) == ("m0", ["k0"], "0")
        for wrong in ({}, {"body": "a", "body_base64": "AA=="}, {"body_base64": "?"}):
            with pytest.raises(UsageError):
                await do("messages.send", topic="orders", **wrong)
        with pytest.raises(UsageError, match="U\\+0001"):
            await do("messages.send", topic="orders", body="x", properties={"a": "b\x01c"})

    operated(test)


def test_a_time_without_messages_is_an_empty_answer() -> None:
    async def test(do: Operating, cluster: Cluster) -> None:
        await three(do)
        found = await do("messages.by_time", topic="orders", since=datetime(2030, 1, 1, tzinfo=UTC))
        assert found.messages == []

    operated(test)
