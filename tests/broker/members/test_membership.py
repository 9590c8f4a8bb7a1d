"""Clients that come, stay and go, through the door."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from sprocket.broker.members.membership import MembershipRequests
from sprocket.broker.tables.clients import ClientTable
from sprocket.protocol.bodies import (
    CheckClientBody,
    ConsumerData,
    GroupConfig,
    GroupMemberList,
    HeartbeatBody,
    ProducerData,
    SubscriptionData,
    TopicConfig,
)
from sprocket.protocol.command import Command, Reply
from sprocket.protocol.requests.client import CheckClient, GroupMembers, Heartbeat, Unregister
from sprocket.protocol.requests.topic import TopicConfigOf
from sprocket.testing.clock import ManualClock
from sprocket.testing.loop import simulate
from tests.broker.parts import SUCCESS, Asker, another, play, settle
from tests.support import run

IDS_CHANGED = 40


async def members(asker: Asker, group: str = "g") -> list[str]:
    reply = await asker.call(GroupMembers(consumer_group=group))
    if reply.code != SUCCESS:
        return []
    return GroupMemberList.decode(reply.body).consumer_id_list


def notices(asker: Asker) -> int:
    assert all(each.code == IDS_CHANGED and each.is_oneway for each in asker.told)
    return len(asker.told)


def test_members_are_told_when_somebody_comes_leaves_or_is_gone() -> None:
    async def test(asker: Asker) -> None:
        await asker.beat("g", topics={"T": "*"})
        assert notices(asker) == 1
        await asker.beat("g", topics={"T": "*"})
        assert notices(asker) == 1
        async with another(asker) as other:
            await other.beat("g", client_id="c2", topics={"T": "*"})
            assert await members(asker) == ["c1", "c2"]
            assert (notices(asker), notices(other)) == (2, 1)
            await other.call(Unregister(client_id="c2", consumer_group="g"))
            assert await members(asker) == ["c1"]
            assert notices(asker) == 3
            await other.beat("g", client_id="c2", topics={"T": "*"})
        await settle()
        assert await members(asker) == ["c1"]
        assert notices(asker) == 5

    play(test)


class Taking:
    """A heartbeat for groups `g0` to `g99` that is being taken in, and others' turns by hand."""

    def __init__(self, count: int = 100) -> None:
        anything: Any = SimpleNamespace(
            make_for_group=lambda *given, **named: None,
            find=lambda name: GroupConfig(group_name=name),
            get=lambda name: None,
            config=SimpleNamespace(notify_members=False),
        )
        self.clients = ClientTable(members_max=10_000)
        self.peer: Any = SimpleNamespace(address="10.0.0.1:1", on_close=self._watched)
        self.peer = _Hashable(**vars(self.peer))
        self.membership = MembershipRequests(
            self.clients, topics=anything, groups=anything, settings=anything, clock=ManualClock()
        )
        body = HeartbeatBody(
            client_id="c",
            consumers=[ConsumerData(group_name=f"g{number}") for number in range(count)],
            producers=[ProducerData(group_name=f"g{number}") for number in range(count)],
        )
        beat = Command.request(Heartbeat(), body=body.encode())

        async def begin() -> list[Any]:
            return [self.membership.heartbeat(beat, self.peer)]

        (self.outcome,) = run(begin())

    def _watched(self, closed: Callable[[Any], None]) -> None:
        self.close = closed

    def leave(self, *names: str) -> None:
        for name in names:
            header = Unregister(client_id="c", consumer_group=name, producer_group=name)
            self.membership.unregister(Command.request(header), self.peer)

    def turn(self) -> bool:
        """One turn of it; whether it is over."""
        try:
            self.outcome.send(None)
        except StopIteration:
            return True
        return False

    @property
    def consuming(self) -> set[str]:
        return {f"g{n}" for n in range(100) if self.clients.group(f"g{n}")}

    @property
    def producing(self) -> set[str]:
        return set(self.clients.producer_groups())


class _Hashable(SimpleNamespace):
    __hash__ = object.__hash__


def test_a_heartbeat_of_a_few_groups_is_answered_at_once() -> None:
    taking = Taking(8)
    assert isinstance(taking.outcome, Reply)
    assert taking.consuming == taking.producing == {f"g{number}" for number in range(8)}


def test_others_have_turns_while_a_heartbeat_of_many_groups_is_taken_in() -> None:
    taking = Taking()
    turns, most, known = 0, 0, 0
    while not taking.turn():
        now = len(taking.consuming) + len(taking.producing)
        turns, most, known = turns + 1, max(most, now - known), now
    assert (turns, most, known) == (14, 16, 200)
    taking.clients.validate()


def test_a_group_that_is_left_while_a_heartbeat_is_taken_in_stays_left() -> None:
    taking = Taking()
    for _ in range(8):
        taking.turn()
    taking.leave("g0", "g99")
    while not taking.turn():
        pass
    whole = {f"g{number}" for number in range(1, 99)}
    assert taking.consuming == taking.producing == whole
    taking.leave("g1")
    assert taking.consuming == whole - {"g1"}


def test_a_client_that_goes_while_its_heartbeat_is_taken_in_leaves_nothing() -> None:
    taking = Taking()
    for _ in range(9):
        taking.turn()
    taking.outcome.close()

    async def closes() -> int:
        taking.close(taking.peer)
        most, known = 0, len(taking.consuming) + len(taking.producing)
        while known:
            await asyncio.sleep(0)
            now = len(taking.consuming) + len(taking.producing)
            most, known = max(most, known - now), now
        return most

    assert run(closes()) <= 32  # groups in one turn of the loop
    assert taking.consuming == taking.producing == set()
    taking.clients.validate()


def test_a_group_with_nobody_in_it_has_no_members() -> None:
    async def test(asker: Asker) -> None:
        reply = await asker.call(GroupMembers(consumer_group="g"))
        assert (reply.code, reply.remark) == (1, "no consumer for this group, g")
        assert await asker.code(Unregister(client_id="x", consumer_group="g")) == SUCCESS

    play(test)


def test_a_heartbeat_makes_the_groups_retry_topic() -> None:
    async def test(asker: Asker) -> None:
        await asker.beat("g", topics={"T": "*"})
        reply = await asker.call(TopicConfigOf(topic="%RETRY%g"))
        topic = TopicConfig.decode(reply.body)
        assert (topic.read_queue_nums, topic.perm) == (1, 6)

    play(test)


def test_an_unknown_group_that_may_not_be_made_is_no_member() -> None:
    async def test(asker: Asker) -> None:
        await asker.beat("g", topics={"T": "*"})
        assert await members(asker) == []

    play(test, auto_create_groups=False)


def test_nobody_is_told_where_that_is_off_or_the_group_broadcasts() -> None:
    async def off(asker: Asker) -> None:
        await asker.beat("g", topics={"T": "*"})
        assert notices(asker) == 0

    async def broadcasting(asker: Asker) -> None:
        await asker.beat("g", topics={"T": "*"}, model="BROADCASTING")
        assert notices(asker) == 0

    play(off, notify_members=False)
    play(broadcasting)


def test_a_silent_client_is_let_go() -> None:
    async def test(asker: Asker) -> None:
        async with another(asker) as other:
            await other.beat("g", client_id="c2", topics={"T": "*"}, producer="p")
            for _ in range(14):
                await asyncio.sleep(10)
                await asker.beat("g", topics={"T": "*"})
            assert await members(asker) == ["c1"]

    play(test)


def test_a_clock_that_is_set_makes_nobody_silent() -> None:
    silent: list[str] = []

    async def main() -> None:
        clock = ManualClock()
        clients = ClientTable(members_max=10)
        settings: Any = SimpleNamespace(config=SimpleNamespace(client_expiry_ms=120_000))
        parts: Any = None
        membership = MembershipRequests(
            clients, topics=parts, groups=parts, settings=settings, clock=clock
        )
        peer: Any = _Hashable(
            address="10.0.0.1:1", on_close=lambda closed: None, close=lambda: silent.append("c")
        )
        body = HeartbeatBody(client_id="c", producers=[ProducerData(group_name="p")]).encode()
        membership.heartbeat(Command.request(Heartbeat(), body=body), peer)
        for jump_ms in (86_400_000, -2 * 86_400_000):
            clock.move(jump_ms)
            await asyncio.sleep(10)
            await membership.drop_silent()
            assert len(clients.producers("p")) == 1
        assert clients.silent(0) == []
        now_ms = int(asyncio.get_running_loop().time() * 1000)
        assert len(clients.silent(now_ms)) == 1

    simulate(lambda network: main())
    assert silent == []


def test_a_fingerprint_stands_for_subscriptions_that_are_known() -> None:
    async def beat(asker: Asker, fingerprint: int, *, without: bool) -> str:
        subscription = SubscriptionData(topic="T", sub_string="*", sub_version=1)
        consumer = ConsumerData(group_name="g", subscriptions=[] if without else [subscription])
        body = HeartbeatBody(
            client_id="c",
            consumers=[consumer],
            heartbeat_fingerprint=fingerprint,
            without_sub=without,
        )
        reply = await asker.call(Heartbeat(), body.encode())
        assert reply.fields["IS_SUPPORT_HEART_BEAT_V2"] == "true"
        return reply.fields["IS_SUB_CHANGE"]

    async def test(asker: Asker) -> None:
        assert await beat(asker, 5, without=True) == "true"
        await beat(asker, 5, without=False)
        assert await beat(asker, 5, without=True) == "false"
        assert await beat(asker, 6, without=False) == "true"

    play(test)


@pytest.mark.parametrize("body", [b"", b'{"clientID":', b"[]", b"\xff\xfe", b'{"clientID":5}'])
def test_what_is_no_heartbeat_is_refused_and_the_connection_goes_on(body: bytes) -> None:
    async def test(asker: Asker) -> None:
        assert await asker.code(Heartbeat(), body) == 1
        await asker.beat("g", topics={"T": "*"})

    play(test)


def test_a_heartbeat_that_would_fill_the_memory_is_refused() -> None:
    async def test(asker: Asker) -> None:
        tags = [f"tag{number}" for number in range(200_000)]
        subscription = SubscriptionData(topic="T", sub_string="*", tags_set=tags)
        consumer = ConsumerData(group_name="g", subscriptions=[subscription])
        body = HeartbeatBody(client_id="c", consumers=[consumer])
        assert await asker.code(Heartbeat(), body.encode()) == 1
        assert await members(asker) == []

    play(test)


def test_two_clients_of_one_name_and_a_changed_subscription_are_written_down(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def test(asker: Asker) -> None:
        await asker.beat("g", topics={"T": "a"})
        async with another(asker) as other:
            await other.beat("g", topics={"T": "*"}, version=2)

    with caplog.at_level(logging.WARNING):
        play(test)
    assert "call themselves c1" in caplog.text
    assert "subscribes T now as '*' and no longer as 'a'" in caplog.text


def test_a_tag_subscription_can_be_read_and_a_filter_of_an_unknown_kind_cannot() -> None:
    async def test(asker: Asker) -> None:
        tags = CheckClientBody(subscription_data=SubscriptionData(topic="T", sub_string="a"))
        assert await asker.code(CheckClient(), tags.encode()) == SUCCESS
        assert await asker.code(CheckClient()) == SUCCESS
        odd = SubscriptionData(topic="T", sub_string="a > 5", expression_type="XYZ")
        assert await asker.code(CheckClient(), CheckClientBody(subscription_data=odd).encode()) == 1

    play(test)
