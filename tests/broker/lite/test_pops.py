"""Messages of lite topics: who gets which, in which order, and when again."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from sprocket.protocol.requests.send import SendBatch, SendMessageV2
from sprocket.protocol.requests.topic import DeleteTopic
from sprocket.testing.loop import simulate
from sprocket.testing.network import Network
from tests.broker.groups import group
from tests.broker.lite.lites import (
    FOUND,
    GONE,
    PARENT,
    POLLING_TIMEOUT,
    LitePopped,
    ack,
    begin,
    bind,
    change,
    hide,
    pop,
    send,
    subscribe,
)
from tests.broker.parts import STORE, SUCCESS, Asker, another, play, settle
from tests.broker.pop.test_pops import crashing


def test_a_client_gets_the_messages_of_what_it_subscribes_and_no_others() -> None:
    async def test(asker: Asker) -> None:
        await begin(asker)
        await send(asker, "a", b"1", b"2")
        await send(asker, "b", b"3")
        await send(asker, "c", b"4")
        await subscribe(asker, "a", "b")
        found = await pop(asker)
        assert sorted(found.bodies) == [b"1", b"2", b"3"]
        assert found.counts == [0, 0, 0]
        assert {each.topic for each in found.messages} == {PARENT}
        assert found.fields["reviveQid"] == "999"
        assert (await pop(asker)).code == POLLING_TIMEOUT
        assert await ack(asker, found) == [0, 0, 0]
        await send(asker, "c", b"5")
        assert (await pop(asker)).code == POLLING_TIMEOUT
        await subscribe(asker, "c")
        assert (await pop(asker)).bodies == [b"4", b"5"]

    play(test)


def test_the_messages_are_in_the_parent_topic_as_well() -> None:
    async def test(asker: Asker) -> None:
        await begin(asker)
        await send(asker, "a", b"1", b"2")
        assert await asker.bodies(PARENT) == [b"1", b"2"]

    play(test)


def test_a_pop_waits_for_a_message() -> None:
    async def test(asker: Asker) -> None:
        await begin(asker)
        await subscribe(asker, "a")
        waiting = asyncio.create_task(pop(asker, hold_ms=20_000))
        await asyncio.sleep(5)
        assert not waiting.done()
        await send(asker, "b", b"no")
        await settle()
        assert not waiting.done()
        await send(asker, "a", b"yes")
        await settle()
        assert waiting.done()
        assert (await waiting).bodies == [b"yes"]
        assert (await pop(asker, hold_ms=3_000)).code == POLLING_TIMEOUT

    play(test)


def test_a_client_may_wait_before_it_subscribes() -> None:
    async def test(asker: Asker) -> None:
        await begin(asker)
        await send(asker, "a", b"1")
        waiting = asyncio.create_task(pop(asker, hold_ms=20_000))
        await settle()
        await subscribe(asker, "a")
        await settle()
        assert (await waiting).bodies == [b"1"]

    play(test)


def test_a_lite_topic_gives_nothing_until_all_of_it_is_done() -> None:
    async def test(asker: Asker) -> None:
        await begin(asker)
        await subscribe(asker, "a")
        await send(asker, "a", b"1", b"2", b"3")
        found = await pop(asker, count=2)
        assert found.bodies == [b"1", b"2"]
        waiting = asyncio.create_task(pop(asker, hold_ms=5_000))
        assert await ack(asker, found, 1) == [0]
        await settle()
        assert not waiting.done()
        assert await ack(asker, found, 0) == [0]
        await settle()
        assert (await waiting).bodies == [b"3"]

    play(test)


def test_what_is_not_acknowledged_comes_again_and_what_is_done_does_not() -> None:
    async def test(asker: Asker) -> None:
        await begin(asker)
        await subscribe(asker, "a")
        await send(asker, "a", b"1", b"2", b"3")
        found = await pop(asker)
        assert await ack(asker, found, 1) == [0]
        waiting = asyncio.create_task(pop(asker, hold_ms=60_000))
        await asyncio.sleep(9.9)
        assert not waiting.done()
        again = await waiting
        assert again.bodies == [b"1", b"3"]
        assert again.counts == [1, 1]
        assert await ack(asker, found, 0) == [GONE]
        assert await ack(asker, again) == [0, 0]
        assert await ack(asker, again, 0) == [0]  # repeated
        assert (await pop(asker)).code == POLLING_TIMEOUT

    play(test)


@pytest.mark.parametrize("suspend", [False, True])
def test_a_message_can_be_given_back(suspend: bool) -> None:
    async def test(asker: Asker) -> None:
        await begin(asker)
        await subscribe(asker, "a")
        await send(asker, "a", b"1", b"2")
        found = await pop(asker, count=1)
        assert await hide(asker, found, 0, 2_000, suspend=suspend) == SUCCESS
        assert (await pop(asker, hold_ms=1_900)).code == POLLING_TIMEOUT
        again = await pop(asker, hold_ms=1_000)
        assert (again.bodies, again.counts) == ([b"1", b"2"], [int(not suspend), 0])

    play(test)


def test_clients_of_a_group_share_a_lite_topic_and_groups_do_not() -> None:
    async def test(asker: Asker) -> None:
        await begin(asker)
        await bind(asker, "h")
        for client in "cd":
            await subscribe(asker, "a", client=client)
        await subscribe(asker, "a", client="e", group="h")
        await send(asker, "a", b"1")
        both = [await pop(asker, client=client) for client in "cd"]
        assert sorted(each.code for each in both) == [FOUND, POLLING_TIMEOUT]
        assert (await pop(asker, client="e", group="h")).bodies == [b"1"]
        first = next(each for each in both if each.code == FOUND)
        await send(asker, "a", b"2")
        assert await ack(asker, first) == [0]
        more = [await pop(asker, client=client) for client in "cd"]
        assert [each.bodies for each in more if each.code == FOUND] == [[b"2"]]

    play(test)


def test_a_message_wakes_one_of_the_clients_that_wait() -> None:
    async def test(asker: Asker) -> None:
        await begin(asker)
        for client in "cde":
            await subscribe(asker, "a", client=client)
        waiting = [
            asyncio.create_task(pop(asker, client=client, hold_ms=9_000)) for client in "cde"
        ]
        await settle()
        await send(asker, "a", b"1")
        await settle()
        assert sum(each.done() for each in waiting) == 1
        (woken,) = [await each for each in waiting if each.done()]
        assert woken.bodies == [b"1"]
        await send(asker, "a", b"2")
        await ack(asker, woken)
        await settle()
        assert sum(each.done() for each in waiting) == 2
        codes = [each.code for each in await asyncio.gather(*waiting)]
        assert sorted(codes) == [FOUND, FOUND, POLLING_TIMEOUT]

    play(test)


def test_another_gets_what_a_client_that_is_gone_would_have_got() -> None:
    async def test(asker: Asker) -> None:
        await begin(asker)
        async with another(asker) as other:
            for client in "cd":
                await subscribe(other, "a", client=client)
            lost = asyncio.create_task(pop(other, client="c", hold_ms=60_000))
            await settle()
        lost.cancel()
        waiting = asyncio.create_task(pop(asker, client="d", hold_ms=60_000))
        await settle()
        await send(asker, "a", b"1")
        assert (await waiting).bodies == [b"1"]

    play(test)


def test_an_attempt_that_is_repeated_gets_the_same() -> None:
    async def test(asker: Asker) -> None:
        await begin(asker)
        await subscribe(asker, "a", "b")
        await send(asker, "a", b"1")
        await send(asker, "b", b"2")
        assert (await pop(asker, attempt="x")).bodies == [b"1", b"2"]
        assert (await pop(asker, attempt="y")).code == POLLING_TIMEOUT
        again = await pop(asker, attempt="x")
        assert (again.bodies, again.counts) == ([b"1", b"2"], [0, 0])
        assert await ack(asker, again) == [0, 0]

    play(test)


def test_many_lite_topics_come_in_the_order_of_their_messages() -> None:
    async def test(asker: Asker) -> None:
        await begin(asker)
        names = [f"n{number}" for number in range(300)]
        await subscribe(asker, *names)
        for name in names:
            await send(asker, name, name.encode())
        found: list[LitePopped] = []
        while sum(len(each.messages) for each in found) < len(names):
            found.append(await pop(asker))
            assert set(await ack(asker, found[-1])) == {0}
        bodies = [body.decode() for each in found for body in each.bodies]
        assert bodies == names

    play(test)


def test_a_group_that_subscribes_all_gets_all() -> None:
    async def test(asker: Asker) -> None:
        await begin(asker, lite_sub_wildcard="true")
        await send(asker, "a", b"1")
        assert await change(asker, "COMPLETE_ADD", client="c") == SUCCESS
        await settle()
        await send(asker, "b", b"2")
        assert (await pop(asker)).bodies == [b"1", b"2"]
        assert await change(asker, "COMPLETE_ADD", client="d") == SUCCESS
        waiting = asyncio.create_task(pop(asker, client="d", hold_ms=9_000))
        await settle()
        await send(asker, "new", b"3")
        assert (await waiting).bodies == [b"3"]

    play(test)


def test_a_kill_forgets_no_acknowledgement_and_no_message_in_flight() -> None:
    async def before(asker: Asker) -> None:
        await begin(asker)
        await subscribe(asker, "a", "b")
        await send(asker, "a", b"1", b"2")
        await send(asker, "b", b"3", b"4")
        first = await pop(asker, count=2)
        assert first.bodies == [b"1", b"2"]
        assert await ack(asker, first) == [0, 0]
        assert (await pop(asker, count=1)).bodies == [b"3"]

    async def after(asker: Asker) -> None:
        assert (await pop(asker)).code == POLLING_TIMEOUT
        await subscribe(asker, "a", "b")
        assert (await pop(asker)).code == POLLING_TIMEOUT
        await send(asker, "a", b"5")
        assert (await pop(asker)).bodies == [b"5"]
        again = await pop(asker, hold_ms=30_000)
        assert (again.bodies, again.counts) == ([b"3", b"4"], [1, 0])

    crashing(before, after)


def test_rows_that_are_done_are_forgotten_and_offsets_stay() -> None:
    async def test(asker: Asker) -> None:
        await begin(asker)
        await subscribe(asker, "a")
        await send(asker, "a", b"1")
        await ack(asker, await pop(asker))
        await asyncio.sleep(400)
        await subscribe(asker, "a")
        assert (await pop(asker)).code == POLLING_TIMEOUT
        await send(asker, "a", b"2")
        assert (await pop(asker)).bodies == [b"2"]

    play(test)


def test_a_slave_that_becomes_the_master_goes_on() -> None:
    async def main(network: Network) -> None:
        async with group(network) as running:
            asker = running.askers[0]
            await begin(asker)
            await subscribe(asker, "a", "b")
            await send(asker, "a", b"1", b"2")
            await send(asker, "b", b"3")
            found = await pop(asker, count=2)
            assert await ack(asker, found, 0) == [0]
            await asyncio.sleep(1)
            running.master.kill()
            (slave,) = running.slaves
            await slave.stop()
            await running.cluster.promote(slave, id=0, role="ASYNC_MASTER")
            asker = running.askers[1]
            asker.broker = slave.server
            await subscribe(asker, "a", "b")
            assert (await pop(asker)).bodies == [b"3"]
            assert (await pop(asker, hold_ms=30_000)).bodies == [b"2"]

    simulate(main)


def test_with_synchronous_flush_nothing_is_given_out_that_a_loss_of_power_could_take() -> None:
    async def test(asker: Asker) -> None:
        await begin(asker)
        await subscribe(asker, "a")
        waiting = asyncio.create_task(pop(asker, hold_ms=9_000))
        await settle()
        await send(asker, "a", b"1")
        assert (await waiting).bodies == [b"1"]

    play(test, store=replace(STORE, flush="SYNC_FLUSH"))


def test_lite_topics_end_with_their_parent_topic() -> None:
    async def test(asker: Asker) -> None:
        await begin(asker)
        await subscribe(asker, "a")
        await send(asker, "a", b"1", b"2")
        await ack(asker, await pop(asker))
        assert await asker.code(DeleteTopic(topic=PARENT)) == SUCCESS
        await begin(asker)
        await send(asker, "a", b"3")
        assert (await pop(asker)).bodies == [b"3"]

    play(test)


def test_a_lite_topic_without_messages_is_forgotten_after_its_time() -> None:
    async def test(asker: Asker) -> None:
        await begin(asker, minutes=30)
        await send(asker, "a", b"1")
        await asyncio.sleep(20 * 60)
        await send(asker, "b", b"2")
        await asyncio.sleep(15 * 60)
        await subscribe(asker, "a", "b")
        assert (await pop(asker)).bodies == [b"2"]
        await send(asker, "a", b"3")
        assert (await pop(asker)).bodies == [b"3"]

    play(test)


@pytest.mark.parametrize(
    ("lite", "more"), [("a b", {}), ("x" * 65, {}), ("a", {"DELAY": "3"}), ("a$b", {})]
)
def test_a_send_with_an_invalid_lite_topic_is_refused(lite: str, more: dict[str, str]) -> None:
    async def test(asker: Asker) -> None:
        await begin(asker)
        given = {"__LITE_TOPIC": lite, **more}
        text = "".join(f"{name}\x01{value}\x02" for name, value in given.items())
        header = SendMessageV2(
            producer_group="p", topic=PARENT, queue_id=0, properties=text, born_timestamp=1
        )
        assert await asker.code(header, b"x") == 13

    play(test)


def test_a_producer_cannot_choose_offsets_of_lite_topics() -> None:
    async def test(asker: Asker) -> None:
        await begin(asker)
        await subscribe(asker, "a")
        forged = {"INNER_MULTI_DISPATCH": f"%LMQ%${PARENT}$a", "INNER_MULTI_QUEUE_OFFSET": "7"}
        await asker.send(PARENT, b"no", **forged)
        assert (await pop(asker)).code == POLLING_TIMEOUT
        await asker.send(PARENT, b"1", **{"__LITE_TOPIC": "a", **forged})
        found = await pop(asker)
        assert found.bodies == [b"1"]
        assert found.handle(0).offset == 0

    play(test)


def test_there_is_a_limit_of_lite_topics() -> None:
    async def test(asker: Asker) -> None:
        await begin(asker)
        await send(asker, "a", b"1")
        await send(asker, "b", b"1")
        header = SendMessageV2(
            producer_group="p", topic=PARENT, queue_id=0, properties="__LITE_TOPIC\x01c\x02",
            born_timestamp=1,
        )  # fmt: skip
        assert await asker.code(header, b"x") == 2017
        await send(asker, "a", b"2")

    play(test, lite_topics_max=2)


def test_a_batch_has_no_lite_topics() -> None:
    async def test(asker: Asker) -> None:
        await begin(asker)
        inner = b"__LITE_TOPIC\x01a\x02"
        size = 4 + 4 + 4 + 4 + 4 + 1 + 2 + len(inner)
        body = b"".join(
            (
                size.to_bytes(4, "big"), bytes(4), bytes(4), bytes(4), (1).to_bytes(4, "big"),
                b"x", len(inner).to_bytes(2, "big"), inner,
            )
        )  # fmt: skip
        header = SendBatch(
            producer_group="p", topic=PARENT, queue_id=0, properties="", born_timestamp=1,
            batch=True,
        )  # fmt: skip
        assert await asker.code(header, body) == 13

    play(test)
