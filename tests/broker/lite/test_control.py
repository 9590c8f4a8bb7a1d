"""Changes of subscriptions: limits, exclusive groups, where a subscription begins, silence."""

from __future__ import annotations

import asyncio
import json

import pytest

from sprocket.protocol.codes import RequestCode
from sprocket.protocol.requests.lite import ChangeLiteSubscription
from tests.broker.lite.lites import (
    GROUP,
    ILLEGAL,
    INVALID,
    PARENT,
    POLLING_TIMEOUT,
    QUOTA,
    ack,
    begin,
    change,
    pop,
    send,
    subscribe,
)
from tests.broker.parts import SUCCESS, Asker, another, play, settle


def test_a_complete_set_replaces_what_was_subscribed() -> None:
    async def test(asker: Asker) -> None:
        await begin(asker)
        await subscribe(asker, "a", "b")
        assert await change(asker, "COMPLETE_ADD", "b", "c") == SUCCESS
        for lite in "abc":
            await send(asker, lite, lite.encode())
        await settle()
        assert (await pop(asker)).bodies == [b"b", b"c"]

    play(test)


def test_what_is_unsubscribed_does_not_come() -> None:
    async def test(asker: Asker) -> None:
        await begin(asker)
        await subscribe(asker, "a", "b")
        await send(asker, "a", b"1")
        await send(asker, "b", b"2")
        await settle()
        assert await change(asker, "PARTIAL_REMOVE", "a") == SUCCESS
        assert (await pop(asker)).bodies == [b"2"]
        assert await change(asker, "COMPLETE_REMOVE") == SUCCESS
        await send(asker, "b", b"3")
        assert (await pop(asker)).code == POLLING_TIMEOUT

    play(test)


def test_subscriptions_of_all_clients_have_a_limit() -> None:
    async def test(asker: Asker) -> None:
        await begin(asker)
        await subscribe(asker, "a", "b")
        await subscribe(asker, "a", "b")  # again
        assert await change(asker, "PARTIAL_ADD", "a", "b", client="d") == QUOTA
        assert await change(asker, "COMPLETE_ADD", "a", "b", client="d") == QUOTA
        await subscribe(asker, "a", client="d")
        assert await change(asker, "PARTIAL_REMOVE", "b") == SUCCESS
        await subscribe(asker, "b", client="d")

    play(test, lite_subscriptions_max=3)


def test_the_last_client_of_an_exclusive_group_has_a_lite_topic_alone() -> None:
    async def test(asker: Asker) -> None:
        await begin(asker, lite_sub_model="Exclusive", lite_sub_reset_offset_exclusive="true")
        await send(asker, "a", b"1")
        async with another(asker) as other:
            await subscribe(asker, "a", "b", client="c")
            assert await ack(asker, await pop(asker)) == [0]
            await subscribe(other, "a", client="d")
            await settle()
            (told,) = [
                each for each in asker.told if each.code == RequestCode.NOTIFY_UNSUBSCRIBE_LITE
            ]
            assert told.fields == {"liteTopic": "a", "consumerGroup": GROUP, "clientId": "c"}
            assert told.is_oneway
            assert (await pop(asker)).code == POLLING_TIMEOUT
            assert (await pop(other, client="d")).bodies == [b"1"]
            await send(asker, "b", b"2")
            assert (await pop(asker)).bodies == [b"2"]

    play(test)


@pytest.mark.parametrize(
    ("option", "wanted"),
    [
        (None, [b"3"]),
        (("POLICY", 0), [b"3"]),
        (("POLICY", 1), [b"0", b"1", b"2", b"3"]),
        (("POLICY", 2), []),
        (("OFFSET", 1), [b"1", b"2", b"3"]),
        (("OFFSET", 99), []),
        (("TAIL_N", 2), [b"1", b"2", b"3"]),
        (("TIMESTAMP", 5), [b"3"]),
    ],
)
def test_a_subscription_begins_where_it_asks_for(
    option: tuple[str, int] | None, wanted: list[bytes]
) -> None:
    async def test(asker: Asker) -> None:
        await begin(asker)
        await subscribe(asker, "a", client="first")
        await send(asker, "a", b"0", b"1", b"2", b"3")
        await ack(asker, await pop(asker, client="first", count=3))
        await subscribe(asker, "a", option=option)
        assert (await pop(asker)).bodies == wanted

    play(test)


def test_a_reset_makes_handles_void() -> None:
    async def test(asker: Asker) -> None:
        await begin(asker)
        await subscribe(asker, "a")
        await send(asker, "a", b"0", b"1")
        found = await pop(asker)
        await ack(asker, found, 0)
        await subscribe(asker, "a", option=("POLICY", 1))
        again = await pop(asker)
        assert again.bodies == [b"0", b"1"]
        assert await ack(asker, found, 1) == [208]
        assert await ack(asker, again) == [0, 0]

    play(test)


def test_a_silent_client_is_forgotten() -> None:
    async def test(asker: Asker) -> None:
        await begin(asker)
        await subscribe(asker, "a")
        await asyncio.sleep(170)
        assert await change(asker, "COMPLETE_ADD", "a") == SUCCESS
        await asyncio.sleep(170)
        await send(asker, "a", b"1")
        await settle()
        assert (await pop(asker)).bodies == [b"1"]
        await asyncio.sleep(230)
        assert (await pop(asker)).code == POLLING_TIMEOUT

    play(test)


@pytest.mark.parametrize(
    ("entry", "code"),
    [
        ({}, INVALID),
        ({"action": "NOTHING"}, ILLEGAL),
        ({"liteTopicSet": ["a", "b c"]}, INVALID),
        ({"group": "unknown"}, ILLEGAL),
        ({"clientId": "x" * 600}, INVALID),
    ],
)
def test_a_change_that_cannot_be_is_refused(entry: dict[str, object], code: int) -> None:
    async def test(asker: Asker) -> None:
        await begin(asker)
        usual = {"action": "PARTIAL_ADD", "clientId": "c", "group": GROUP, "topic": PARENT}
        body = {"subscriptionSet": [{**usual, "liteTopicSet": ["a"], **entry} if entry else {}]}
        assert await asker.code(ChangeLiteSubscription(), json.dumps(body).encode()) == code
        assert await asker.code(ChangeLiteSubscription()) == ILLEGAL

    play(test)


def test_a_client_that_moves_to_another_group_leaves_the_first() -> None:
    async def test(asker: Asker) -> None:
        await begin(asker)
        await subscribe(asker, "a")
        assert await change(asker, "PARTIAL_ADD", "b", group="TOOLS_CONSUMER") == SUCCESS
        await send(asker, "a", b"1")
        await settle()
        assert (await pop(asker)).code == POLLING_TIMEOUT

    play(test)
