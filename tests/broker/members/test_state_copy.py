"""A slave has its master's tables, as both show them to operators and consumers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from sprocket.base.deadline import Deadline
from sprocket.base.errors import ConnectFailed
from sprocket.broker.members.state_copy import StateCopy
from sprocket.broker.tables.changes import CHANGES_MAX
from sprocket.protocol.bodies import GroupConfig, GroupTable, OffsetTable, TopicTable
from sprocket.protocol.codes import OwnRequestCode
from sprocket.protocol.requests.group import (
    AllGroupConfigs,
    CreateGroup,
    DeleteGroup,
    ForbidGroup,
)
from sprocket.protocol.requests.offset import AllOffsets, ResetOffset
from sprocket.protocol.requests.replica import StateChanges
from sprocket.protocol.requests.topic import AllTopicConfigs, DeleteTopic
from sprocket.remoting import address as addresses
from sprocket.store.reading.cold import ColdReads
from sprocket.testing.loop import simulate
from sprocket.testing.network import Network
from tests.broker.groups import BrokerGroup, group
from tests.broker.parts import SUCCESS, Asker

#: In this time offsets are at a slave, s.
SOON = 1.0


def play(
    test: Callable[[BrokerGroup], Awaitable[None]], *, slaves: int = 1, **settings: object
) -> None:
    async def main(network: Network) -> None:
        async with group(network, slaves=slaves, **settings) as running:
            await test(running)

    simulate(main)


async def topics_of(asker: Asker) -> dict[str, object]:
    reply = await asker.call(AllTopicConfigs())
    return dict(TopicTable.decode(reply.body).topic_config_table)


async def groups_of(asker: Asker) -> dict[str, object]:
    return dict(
        GroupTable.decode((await asker.call(AllGroupConfigs())).body).subscription_group_table
    )


async def offsets_of(asker: Asker) -> dict[str, dict[int, int]]:
    return OffsetTable.decode((await asker.call(AllOffsets())).body).offset_table


async def create_group(asker: Asker, name: str, **settings: object) -> None:
    body = GroupConfig(group_name=name, **settings).encode()  # type: ignore[arg-type]
    assert await asker.code(CreateGroup(), body) == SUCCESS


def test_topics_groups_and_offsets_come_to_a_slave_within_a_second() -> None:
    async def test(running: BrokerGroup) -> None:
        master, slave = running.askers
        await master.create("T", queues=3)
        await create_group(master, "g", retry_queue_nums=2)
        assert await master.commit("g", "T", 7, queue=2) == SUCCESS
        await asyncio.sleep(SOON)
        assert await topics_of(slave) == await topics_of(master)
        assert await groups_of(slave) == await groups_of(master)
        assert await offsets_of(slave) == {"T@g": {2: 7}}
        await master.commit("g", "T", 9, queue=2)
        await master.commit("g", "T", 4, queue=0)
        await asyncio.sleep(SOON)
        assert await offsets_of(slave) == {"T@g": {0: 4, 2: 9}}

    play(test)


def test_late_replies_are_used_and_offsets_are_no_older_than_what_a_reply_takes() -> None:
    # The loop of a loaded master answers late, and each question anew would only add to that.
    async def test(running: BrokerGroup) -> None:
        await running.askers[0].create("T")
        await asyncio.sleep(SOON)
        late = 3.0
        network = running.network
        right = network.fate
        host = running.master.name
        network.fate = lambda each: (late,) if each == host else right(each)  # type: ignore[method-assign]
        counts = running.master.server._inside.dispatch.counts
        before = counts[OwnRequestCode.STATE_CHANGES]
        server = running.slaves[0].server
        for number in range(1, 16):
            running.master.server._parts.tables.offsets.put("g", "T", queue_number=0, offset=number)
            await asyncio.sleep(1.0)
            asked = server._parts.tables.offsets.committed("g", "T", 0) or 0
            assert asked >= number - 2 * late - SOON, f"{number - asked} s old"
        questions = counts[OwnRequestCode.STATE_CHANGES] - before
        assert questions <= 2 * 15 / late + 2, "questions do not pile up"
        network.fate = right  # type: ignore[method-assign]

    play(test)


def test_a_slave_of_rocketmq_learns_of_a_new_topic_with_its_first_message() -> None:
    async def test(running: BrokerGroup) -> None:
        master, slave = running.askers
        dispatch = running.master.server._dispatch
        assert dispatch is not None
        del dispatch._endpoints[StateChanges.code]  # as at RocketMQ's, which is asked every 10 s
        await asyncio.sleep(2 * SOON)
        await master.create("T", queues=3)
        await asyncio.sleep(SOON)
        assert "T" not in await topics_of(slave)
        kept = dispatch._endpoints.pop(AllTopicConfigs.code)
        await master.send("T", queue=1)
        await asyncio.sleep(SOON)
        guessed = (await topics_of(slave))["T"]
        assert guessed.write_queue_nums == 2  # those that have messages, whatever the template has
        dispatch._endpoints[AllTopicConfigs.code] = kept
        await master.create("U")
        await master.send("U")
        await asyncio.sleep(SOON)
        assert (await topics_of(slave))["T"] == (await topics_of(master))["T"]

    play(test)


def test_what_is_deleted_at_the_master_is_gone_at_the_slave() -> None:
    async def test(running: BrokerGroup) -> None:
        master, slave = running.askers
        for name in ("T", "kept"):
            await master.create(name)
            await master.send(name)
            await create_group(master, f"g{name}")
            await master.commit(f"g{name}", name, 1)
        await asyncio.sleep(SOON)
        assert await slave.max_offset("T") == 1
        assert await master.code(DeleteTopic(topic="T")) == SUCCESS
        assert await master.code(DeleteGroup(group_name="gT", clean_offset=True)) == SUCCESS
        await asyncio.sleep(SOON)
        assert await topics_of(slave) == await topics_of(master)
        assert await groups_of(slave) == await groups_of(master)
        assert await offsets_of(slave) == {"kept@gkept": {0: 1}}
        assert await slave.max_offset("T") == 0
        assert await slave.max_offset("kept") == 1

    play(test)


def test_a_topic_made_again_keeps_its_new_messages_only() -> None:
    async def test(running: BrokerGroup) -> None:
        master, slave = running.askers
        await master.create("T")
        for body in (b"1", b"2", b"3"):
            await master.send("T", body)
        await running.equal()
        running.slaves[0].pause()
        await master.code(DeleteTopic(topic="T"))
        await master.create("T")
        await master.send("T", b"new")
        running.slaves[0].wake()
        await asyncio.sleep(30)
        assert await slave.bodies("T") == await master.bodies("T") == [b"new"]

    play(test, slave_reads=True)


def test_a_slave_that_was_away_forgets_what_was_deleted_meanwhile() -> None:
    async def test(running: BrokerGroup) -> None:
        master, slave = running.askers
        await master.create("T")
        await master.send("T")
        await create_group(master, "g")
        await master.commit("g", "T", 1)
        await asyncio.sleep(SOON)
        await running.slaves[0].stop()
        await master.code(DeleteTopic(topic="T"))
        await master.code(DeleteGroup(group_name="g"))
        await running.slaves[0].start()
        await asyncio.sleep(5)
        assert await topics_of(slave) == await topics_of(master)
        assert await groups_of(slave) == await groups_of(master)
        assert await offsets_of(slave) == {}
        assert await slave.max_offset("T") == 0

    play(test)


def test_a_reset_follows_and_a_position_goes_back_for_no_other_reason() -> None:
    async def test(running: BrokerGroup) -> None:
        master, slave = running.askers
        await master.create("T")
        await create_group(master, "g")
        for _ in range(5):
            await master.send("T")
        await master.commit("g", "T", 5)
        await asyncio.sleep(SOON)
        reset = ResetOffset(topic="T", group="g", queue_id=0, offset=2, timestamp=-1, is_force=True)
        assert await master.code(reset) == SUCCESS
        await asyncio.sleep(SOON)
        assert await offsets_of(slave) == {"T@g": {0: 2}}
        state = running.slaves[0].server._parts.tables.offsets.to_json()
        assert state["resetTable"] == {"T@g": {0: 2}}

    play(test)


def test_what_a_group_may_not_read_follows() -> None:
    async def test(running: BrokerGroup) -> None:
        master, slave = running.askers
        await create_group(master, "g")
        await master.code(ForbidGroup(group="g", topic="T", readable=False))
        await asyncio.sleep(SOON)
        table = GroupTable.decode((await slave.call(AllGroupConfigs())).body)
        assert table.forbidden_table == {"g": {"T": 4}}
        await master.code(ForbidGroup(group="g", topic="T", readable=True))
        await asyncio.sleep(SOON)
        table = GroupTable.decode((await slave.call(AllGroupConfigs())).body)
        assert table.forbidden_table == {}

    play(test)


def test_many_rows_come_in_many_replies() -> None:
    async def test(running: BrokerGroup) -> None:
        master, slave = running.askers
        await master.create("T", queues=100)
        offsets = running.master.server._parts.tables.offsets
        for number in range(10_000):
            offsets.put(f"g{number % 200}", "T", queue_number=number // 200, offset=number)
        await asyncio.sleep(10)
        assert await offsets_of(slave) == await offsets_of(master)
        await running.slaves[0].stop()
        await running.slaves[0].start()
        await asyncio.sleep(10)
        assert await offsets_of(slave) == await offsets_of(master)
        for number in range(CHANGES_MAX + 1):  # more than is kept, between two questions
            offsets.put("g1", "T", queue_number=number % 3, offset=number)
        offsets.put("g2", "T", queue_number=0, offset=77)
        await asyncio.sleep(10)
        assert await offsets_of(slave) == await offsets_of(master)

    play(test)


def test_a_new_topic_is_at_every_copy_before_its_creation_is_answered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    right = StateCopy._has_log

    async def has_log(self: StateCopy, end: int, address: str) -> bool:
        await asyncio.sleep(0.5)
        return await right(self, end, address)

    async def test(running: BrokerGroup) -> None:
        monkeypatch.setattr(StateCopy, "_has_log", has_log)
        master, *slaves = running.askers
        for number in range(3):
            await asyncio.sleep(0.1 * number)
            await master.create(f"T{number}")
            for slave in slaves:
                assert f"T{number}" in await topics_of(slave)
        await create_group(master, "g")
        for slave in slaves:
            assert "g" in await groups_of(slave)
        await master.send("made-by-send", DEFAULT="TBW102")
        for slave in slaves:
            assert "made-by-send" in await topics_of(slave)

    play(test, slaves=2, role="SYNC_MASTER")


def test_a_creation_waits_for_a_slave_that_stands_still_as_a_send_does_and_not_again() -> None:
    async def test(running: BrokerGroup) -> None:
        master = running.askers[0]
        time = asyncio.get_running_loop().time
        running.slaves[0].pause()
        began = time()
        await master.create("T")
        assert 2.5 < time() - began < 3.5
        began = time()
        await master.create("T2")
        assert time() - began < 0.5

    play(test, role="SYNC_MASTER")


def test_an_asynchronous_master_answers_a_creation_at_once() -> None:
    async def test(running: BrokerGroup) -> None:
        running.slaves[0].pause()
        began = asyncio.get_running_loop().time()
        await running.askers[0].create("T")
        assert asyncio.get_running_loop().time() - began < 0.5

    play(test)


def test_an_idle_slave_asks_three_times_a_second_and_gets_nothing() -> None:
    async def test(running: BrokerGroup) -> None:
        await running.askers[0].create("T")
        await asyncio.sleep(2)
        dispatch = running.master.server._dispatch
        before = dispatch.counts[OwnRequestCode.STATE_CHANGES]
        version = running.slaves[0].server._parts.state_copy.version
        await asyncio.sleep(10)
        assert 20 < dispatch.counts[OwnRequestCode.STATE_CHANGES] - before < 40
        assert running.slaves[0].server._parts.state_copy.version == version

    play(test)


def test_a_slave_gives_its_state_to_nobody() -> None:
    async def test(running: BrokerGroup) -> None:
        assert await running.askers[1].code(StateChanges(broker_id=9)) == 11

    play(test)


def test_the_state_is_never_ahead_of_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(running: BrokerGroup) -> None:
        master, slave = running.askers
        await master.create("T")
        await create_group(master, "g")
        await asyncio.sleep(SOON)
        goes_on = asyncio.Event()

        async def load_log(self: ColdReads, start: int, end: int) -> None:
            await goes_on.wait()

        monkeypatch.setattr(ColdReads, "load_log", load_log)
        await master.send("T")
        await master.commit("g", "T", 1)
        await asyncio.sleep(SOON)
        assert await offsets_of(slave) == {}
        goes_on.set()
        await asyncio.sleep(SOON)
        assert await offsets_of(slave) == {"T@g": {0: 1}}

    play(test)


def test_a_slave_that_does_not_ask_for_changes_finds_a_second_port(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def asks_nothing(self: StateCopy) -> None:
        await asyncio.sleep(1_000)

    async def test(running: BrokerGroup) -> None:
        master = running.askers[0]
        host, port = addresses.split(master.broker.address)
        vip = addresses.join(host, port - 2)
        await asyncio.sleep(30)
        with pytest.raises(ConnectFailed):
            await master.pool.call(vip, AllTopicConfigs(), deadline=Deadline.after(5))
        await running.slaves[0].stop()
        monkeypatch.setattr(StateCopy, "run", asks_nothing)
        await running.slaves[0].start()
        await asyncio.sleep(30)
        reply = await master.pool.call(vip, AllTopicConfigs(), deadline=Deadline.after(5))
        assert reply.body == (await master.call(AllTopicConfigs())).body

    play(test)
