"""What was made with old settings acts by new ones, at once."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from sprocket.protocol.bodies import LockBody, LockedBody, Queue
from sprocket.protocol.requests.admin import UpdateBrokerConfig
from sprocket.protocol.requests.lock import LockQueues
from sprocket.protocol.requests.send import SendMessageV2
from sprocket.testing.cluster import SMALL_STORE
from sprocket.testing.loop import simulate
from sprocket.testing.network import Network
from tests.broker.groups import group
from tests.broker.members.test_registration import Listener, listening
from tests.broker.parts import SUCCESS, Asker, play, serving, settle

REFUSED = 29


async def change(asker: Asker, *lines: str) -> int:
    return await asker.code(UpdateBrokerConfig(), "".join(f"{each}\n" for each in lines).encode())


def test_region_and_traces_are_in_messages_and_all_replies() -> None:
    async def test(asker: Asker) -> None:
        await asker.create("T")
        await asker.send("T")
        assert await change(asker, "regionId=North", "traceOn=false") == SUCCESS
        fields = await asker.send("T")
        assert (fields["MSG_REGION"], fields["TRACE_ON"]) == ("North", "false")
        old, new = (await asker.pull("T")).messages
        assert (old.properties["MSG_REGION"], old.properties["TRACE_ON"]) == (
            "DefaultRegion",
            "true",
        )
        assert (new.properties["MSG_REGION"], new.properties["TRACE_ON"]) == ("North", "false")
        header = SendMessageV2(producer_group="p", topic="T", queue_id=9, born_timestamp=1)
        refused = await asker.call(header, b"x")
        assert refused.code != SUCCESS
        assert (refused.fields["MSG_REGION"], refused.fields["TRACE_ON"]) == ("North", "false")

    play(test)


def test_how_long_a_message_may_wait() -> None:
    async def test(asker: Asker) -> None:
        await asker.create("T")
        header = SendMessageV2(
            producer_group="p", topic="T", queue_id=0, born_timestamp=1,
            properties="TIMER_DELAY_SEC\x013600\x02",
        )  # fmt: skip
        assert await asker.code(header, b"x") == SUCCESS
        assert await change(asker, "timerMaxDelaySec=60") == SUCCESS
        assert await asker.code(header, b"x") == 13
        assert await change(asker, "timerMaxDelaySec=7200") == SUCCESS
        assert await asker.code(header, b"x") == SUCCESS

    play(test)


def test_topics_of_sends_have_as_many_queues_as_the_template_now() -> None:
    async def test(asker: Asker) -> None:
        def queues(topic: str) -> int:
            return asker.broker._parts.tables.topics.by_name[topic].write_queue_nums

        async def first(topic: str) -> None:
            header = SendMessageV2(
                producer_group="p", topic=topic, queue_id=0, born_timestamp=1,
                default_topic="TBW102", default_topic_queue_nums=64,
            )  # fmt: skip
            assert await asker.code(header, b"x") == SUCCESS

        await first("Before")
        assert await change(asker, "defaultTopicQueueNums=16", "traceTopicEnable=true") == SUCCESS
        await first("After")
        assert (queues("Before"), queues("After")) == (8, 16)
        await asker.send("RMQ_SYS_TRACE_TOPIC")

    play(test)


def test_leases_end_by_the_new_time() -> None:
    async def test(asker: Asker) -> None:
        queue = Queue(broker_name="broker-a", queue_id=0, topic="T")
        await asker.create("T")

        async def locked(client: str) -> bool:
            body = LockBody(consumer_group="g", client_id=client, mq_set=[queue])
            reply = await asker.call(LockQueues(), body.encode())
            return bool(LockedBody.decode(reply.body).locked)

        assert await locked("a")
        await asyncio.sleep(5)
        assert not await locked("b")
        assert await change(asker, "broker.lock_lease_ms=4000") == SUCCESS
        assert await locked("b")

    play(test)


def test_limits_of_members_and_offsets() -> None:
    async def test(asker: Asker) -> None:
        await asker.create("T")
        await asker.beat("g", topics={"T": "*"})
        assert await asker.commit("g", "T", 0) == SUCCESS
        assert await change(asker, "broker.members_max=1", "broker.offsets_max=1") == SUCCESS
        with pytest.raises(AssertionError, match="its limit"):
            await asker.beat("other", topics={"T": "*"})
        assert await asker.commit("other", "T", 0) != SUCCESS
        assert await change(asker, "broker.members_max=9", "broker.offsets_max=9") == SUCCESS
        await asker.beat("other", topics={"T": "*"})
        assert await asker.commit("other", "T", 0) == SUCCESS

    play(test)


def test_name_servers_come_and_go() -> None:
    async def main() -> None:
        one, two = Listener(), Listener()
        async with listening(one, 9876) as first, listening(two, 9877) as second:
            async with serving(nameservers=(first,)) as asker:
                await settle()
                assert await change(asker, f"namesrvAddr={first};{second}") == SUCCESS
                await settle()
                assert len(two.told) == 1
                assert await change(asker, f"namesrvAddr={second}") == SUCCESS
                await settle()
                assert len(one.left) == 1
                await asker.create("T")
                assert "T" in two.topics[-1]
                assert all("T" not in each for each in one.topics)
            assert (len(one.left), len(two.left)) == (1, 1)

    simulate(lambda network: main())


def test_a_slave_takes_larger_messages_once_both_allow_them() -> None:
    async def main(network: Network) -> None:
        store = replace(SMALL_STORE, log_file_bytes=1 << 18, message_bytes_max=1_000)
        async with group(network, slaves=1, store=store) as running:
            master, slave = running.askers
            await master.create("T")
            header = SendMessageV2(producer_group="p", topic="T", queue_id=0, born_timestamp=1)
            assert await master.code(header, b"x" * 90_000) == 13
            for asker in (slave, master):
                assert await change(asker, "maxMessageSize=100000") == SUCCESS
            await master.send("T", b"x" * 90_000)
            await running.equal()

    simulate(main)


def test_copies_that_a_send_waits_for_change_while_they_are_waited_for() -> None:
    async def main(network: Network) -> None:
        async with group(network, slaves=2, role="SYNC_MASTER", copies=3, copies_min=2) as running:
            master = running.askers[0]
            await master.create("T")
            await master.send("T")
            running.slaves[0].kill()
            await asyncio.sleep(1)
            header = SendMessageV2(producer_group="p", topic="T", queue_id=0, born_timestamp=1)
            assert await master.code(header, b"x") != SUCCESS
            assert await change(master, "inSyncReplicas=2") == SUCCESS
            assert await master.code(header, b"x") == SUCCESS
            assert await change(master, "inSyncReplicas=1", "minInSyncReplicas=1") == REFUSED

    simulate(main)


def test_the_stream_to_slaves_is_slowed_and_freed() -> None:
    async def main(network: Network) -> None:
        async with group(network, slaves=1) as running:
            master = running.askers[0]
            await master.create("T")
            await running.equal()
            slow = ("haFlowControlEnable=true", "maxHaTransferByteInSecond=1024")
            assert await change(master, *slow) == SUCCESS
            for _ in range(10):
                await master.send("T", b"x" * 4_000)
            with pytest.raises(AssertionError):
                await running.equal(5)
            assert await change(master, "haFlowControlEnable=false") == SUCCESS
            await running.equal(5)

    simulate(main)
