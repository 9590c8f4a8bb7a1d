"""Replication as senders, consumers and operators see it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from sprocket import Message, Producer
from sprocket.base.config import check
from sprocket.base.errors import ConfigError
from sprocket.broker.config import BrokerConfig
from sprocket.broker.members.replication import copy_rules
from sprocket.client.config import ProducerConfig
from sprocket.protocol.command import Command
from sprocket.protocol.requests.send import SendMessageV2
from sprocket.remoting.tls.settings import TlsConfig
from sprocket.replication.copies import CopyRules
from sprocket.testing.cluster import SMALL_STORE, Cluster
from sprocket.testing.loop import simulate
from sprocket.testing.network import Network
from tests.broker.groups import BrokerGroup, group
from tests.broker.parts import Asker
from tests.certificates import Authority, Issued

SUCCESS, SYSTEM_ERROR, SLAVE_NOT_AVAILABLE, FLUSH_SLAVE_TIMEOUT = 0, 1, 11, 12


def play(
    test: Callable[[BrokerGroup], Awaitable[None]], *, slaves: int = 1, **settings: object
) -> None:
    async def main(network: Network) -> None:
        async with group(network, slaves=slaves, **settings) as running:
            await running.askers[0].create("T")
            await test(running)

    simulate(main)


async def sent(asker: Asker, *, wait: bool = True) -> Command:
    properties = "" if wait else "WAIT\x01false\x02"
    header = SendMessageV2(
        producer_group="p", topic="T", queue_id=0, properties=properties, born_timestamp=1
    )
    return await asker.call(header, b"x")


@pytest.mark.parametrize(
    ("settings", "rules"),
    [
        ({}, CopyRules(1, 1)),
        ({"copies": 3}, CopyRules(1, 1)),
        ({"role": "SYNC_MASTER"}, CopyRules(2, 2)),
        ({"role": "SYNC_MASTER", "copies": 1}, CopyRules(1, 1)),
        ({"role": "SYNC_MASTER", "copies": 3}, CopyRules(3, 3)),
        ({"role": "SYNC_MASTER", "copies": 3, "copies_min": 2}, CopyRules(3, 2)),
        (
            {"role": "SYNC_MASTER", "copies_min": 1, "copies_follow_sync": True},
            CopyRules(2, 1, follows_sync=True),
        ),
    ],
)
def test_a_synchronous_master_wants_one_slave_unless_a_number_is_set(
    settings: dict[str, object], rules: CopyRules
) -> None:
    assert copy_rules(BrokerConfig(**settings)) == rules  # type: ignore[arg-type]


def test_no_message_can_need_more_copies_to_be_accepted_than_to_be_answered() -> None:
    with pytest.raises(ConfigError, match="minInSyncReplicas"):
        check(BrokerConfig(role="SYNC_MASTER", copies=2, copies_min=3))


def test_a_send_is_answered_when_a_slave_has_the_message() -> None:
    async def test(running: BrokerGroup) -> None:
        before = running.slaves[0].server._store.log_end
        assert (await sent(running.askers[0])).code == SUCCESS
        assert running.slaves[0].server._store.log_end > before

    play(test, role="SYNC_MASTER")


def test_too_few_slaves_refuse_a_message_before_it_is_stored() -> None:
    async def test(running: BrokerGroup) -> None:
        asker = running.askers[0]
        await running.slaves[0].stop()
        await asyncio.sleep(1)
        end = running.master.server._store.log_end
        reply = await sent(asker)
        assert reply.code == SYSTEM_ERROR
        assert "in-sync replicas not enough: 1 of the 2 copies" in (reply.remark or "")
        assert running.master.server._store.log_end == end
        assert (await sent(asker, wait=False)).code == SUCCESS
        await running.slaves[0].start()
        await running.equal()
        assert (await sent(asker)).code == SUCCESS

    play(test, role="SYNC_MASTER")


def test_a_slave_that_stands_still_makes_sends_late_and_readers_wait() -> None:
    async def test(running: BrokerGroup) -> None:
        asker = running.askers[0]
        assert (await sent(asker)).code == SUCCESS
        running.slaves[0].pause()
        began = asyncio.get_running_loop().time()
        assert (await sent(asker)).code == FLUSH_SLAVE_TIMEOUT
        assert 2.9 < asyncio.get_running_loop().time() - began < 3.5
        assert await asker.max_offset("T") == 1
        assert len(await asker.bodies("T")) == 1
        held = asyncio.ensure_future(asker.pull("T", 1, hold_ms=20_000))
        await asyncio.sleep(1)
        assert not held.done()
        running.slaves[0].wake()
        assert len((await held).messages) == 1

    play(test, role="SYNC_MASTER")


def test_a_slave_that_is_gone_while_a_send_waits_is_reported_as_such() -> None:
    async def test(running: BrokerGroup) -> None:
        running.slaves[0].pause()
        sending = asyncio.ensure_future(sent(running.askers[0]))
        await asyncio.sleep(1)
        running.slaves[0].kill()
        assert (await sending).code == SLAVE_NOT_AVAILABLE

    play(test, role="SYNC_MASTER")


def test_a_send_that_waits_for_nobody_is_answered_at_once() -> None:
    async def test(running: BrokerGroup) -> None:
        running.slaves[0].pause()
        began = asyncio.get_running_loop().time()
        assert (await sent(running.askers[0], wait=False)).code == SUCCESS
        assert asyncio.get_running_loop().time() - began < 0.1

    play(test, role="SYNC_MASTER")


def test_fewer_copies_may_be_enough_to_accept_a_message() -> None:
    async def test(running: BrokerGroup) -> None:
        await running.slaves[0].stop()
        await asyncio.sleep(1)
        assert (await sent(running.askers[0])).code == SLAVE_NOT_AVAILABLE

    play(test, slaves=2, role="SYNC_MASTER", copies=3, copies_min=2)


def test_what_is_accepted_without_a_copy_is_read_without_one() -> None:
    async def test(running: BrokerGroup) -> None:
        await running.slaves[0].stop()
        await asyncio.sleep(1)
        assert (await sent(running.askers[0])).code == SLAVE_NOT_AVAILABLE
        assert len(await running.askers[0].bodies("T")) == 1

    play(test, role="SYNC_MASTER", copies_min=1)


def test_a_send_waits_for_no_more_copies_than_there_can_be_if_that_is_set() -> None:
    async def test(running: BrokerGroup) -> None:
        asker, slave = running.askers[0], running.slaves[0]
        assert (await sent(asker)).code == SUCCESS
        slave.pause()
        sending = asyncio.ensure_future(sent(asker))
        await asyncio.sleep(1)
        assert not sending.done(), "a slave that is connected is waited for"
        slave.kill()
        assert (await sending).code == SUCCESS, "and one that is gone is not"
        for _ in range(3):
            assert (await sent(asker)).code == SUCCESS
        assert len(await asker.bodies("T")) == 5
        await slave.start()
        await asyncio.sleep(5)
        slave.pause()
        assert (await sent(asker)).code == FLUSH_SLAVE_TIMEOUT, "it is back, so it is waited for"

    play(test, role="SYNC_MASTER", copies_min=1, copies_follow_sync=True)


def test_what_is_wanted_does_not_sink_below_the_least() -> None:
    async def test(running: BrokerGroup) -> None:
        asker, (one, other) = running.askers[0], running.slaves
        await one.stop()
        await asyncio.sleep(1)
        assert (await sent(asker)).code == SUCCESS
        await other.stop()
        await asyncio.sleep(1)
        reply = await sent(asker)
        assert reply.code == SYSTEM_ERROR
        assert "in-sync replicas not enough" in (reply.remark or "")

    play(test, slaves=2, role="SYNC_MASTER", copies=3, copies_min=2, copies_follow_sync=True)


def test_an_asynchronous_master_waits_for_nobody() -> None:
    async def test(running: BrokerGroup) -> None:
        await running.slaves[0].stop()
        assert (await sent(running.askers[0])).code == SUCCESS
        assert len(await running.askers[0].bodies("T")) == 1

    play(test)


def test_whoever_connects_and_is_no_slave_confirms_nothing() -> None:
    async def test(running: BrokerGroup) -> None:
        running.slaves[0].pause()
        sending = asyncio.ensure_future(sent(running.askers[0]))
        await asyncio.sleep(0.5)
        host = running.master.address
        _, writer = await asyncio.open_connection(host, 10912)
        writer.write(running.master.server._store.log_end.to_bytes(8, "big"))
        assert (await sending).code == FLUSH_SLAVE_TIMEOUT
        writer.transport.abort()

    play(test, role="SYNC_MASTER")


def test_a_slave_has_the_topics_of_what_it_copies_and_gives_it_to_consumers() -> None:
    async def test(running: BrokerGroup) -> None:
        master, slave = running.askers
        for _ in range(3):
            await sent(master)
        await running.equal()
        await running.master.stop()
        await asyncio.sleep(30)
        assert len(await slave.bodies("T")) == 3
        held = await slave.pull("T", 3, hold_ms=2_000)
        assert held.code == 19
        assert (await slave.pull("T", 100, hold_ms=2_000)).next_offset == 100

    play(test, slave_reads=True)


def test_a_slave_sends_who_has_caught_up_to_its_master() -> None:
    async def test(running: BrokerGroup) -> None:
        master, slave = running.askers
        await sent(master)
        await running.equal()
        pulled = await slave.pull("T", 0)
        assert (pulled.code, pulled.fields["suggestWhichBrokerId"]) == (0, "0")
        began = asyncio.get_running_loop().time()
        for offset in (1, 100):
            pulled = await slave.pull("T", offset, hold_ms=20_000)
            assert (pulled.code, pulled.next_offset) == (20, offset)
            assert pulled.fields["suggestWhichBrokerId"] == "0"
        assert asyncio.get_running_loop().time() - began < 1

    play(test, slave_reads=True)


async def with_a_log(network: Network, **settings: object) -> tuple[Cluster, int]:
    """A cluster whose slave was not started yet, and where its master's log ends."""
    config = BrokerConfig(**settings)  # type: ignore[arg-type]
    cluster = Cluster(network, 1, slaves=1, broker=config)
    for machine in (*cluster.nameservers, *cluster.brokers):
        await machine.start()
    asker = Asker(cluster.brokers[0].server)
    async with asker.pool:
        await asker.create("T")
        for number in range(120):
            await asker.send("T", b"%03d" % number + bytes(1000))
    return cluster, cluster.brokers[0].server._store.log_end


def test_a_slave_far_behind_gets_no_more_than_the_limit_and_goes_on_all_the_time() -> None:
    # The default batch is 43 times what the limit gives in a second, and a connection on which
    # nothing comes for 20 s is closed.
    async def main(network: Network) -> None:
        rate = 3_000
        cluster, log_end = await with_a_log(
            network, replication_start="first", replication_limit=True,
            replication_bytes_per_second=rate,
        )  # fmt: skip
        slave, before, ends = cluster.slaves[0], 0, list[int]()
        await slave.start()
        await asyncio.sleep(2)
        links = set(cluster.brokers[0].server._inside.parts.replication.sender.links)
        for _ in range(30):
            before = slave.server._store.replica.end
            await asyncio.sleep(1)
            ends.append(slave.server._store.replica.end - before)
        assert 2 * rate // 3 <= sum(ends) / len(ends) <= 1.05 * rate
        assert max(ends) <= 2 * rate
        sender = cluster.brokers[0].server._inside.parts.replication.sender
        assert set(sender.links) == links, "on one connection"
        await asyncio.sleep(log_end / rate)
        assert slave.server._store.log_end == log_end
        await cluster.stop()

    simulate(main)


@pytest.mark.parametrize("start", ["first", "last", "70000"])
def test_a_new_slave_begins_where_that_is_set(start: str) -> None:
    async def main(network: Network) -> None:
        cluster, log_end = await with_a_log(network, replication_start=start)
        slave, file_bytes = cluster.slaves[0], SMALL_STORE.log_file_bytes
        await slave.start()
        await asyncio.sleep(5)
        store = slave.server._store
        wanted = {"first": 0, "last": log_end}.get(start, 70_000)
        assert store.log_start == wanted - wanted % file_bytes
        assert store.log_end == log_end
        asker = Asker(cluster.brokers[0].server)
        async with asker.pool:
            (*_, last) = await asker.bodies("T")
        newest = store.read("T", 0, 119, count_max=1, bytes_max=1)
        assert [bytes(each.body) for each in newest.records()] == [last]
        first = store.min_offset("T", 0)
        assert (first == 0) == (start == "first")
        await cluster.stop()

    simulate(main)


def test_a_log_that_has_grown_apart_is_not_copied(caplog: pytest.LogCaptureFixture) -> None:
    async def test(running: BrokerGroup) -> None:
        await sent(running.askers[0])
        await running.equal()
        await running.slaves[0].stop()
        disk = running.slaves[0].disk
        path = f"/data/commitlog/{0:020d}"
        log = bytearray(disk.read(path) or b"")
        at = running.master.server._store.replica.newest() + 40
        log[at] ^= 1  # its time of birth, which no checksum covers
        disk.replace(path, bytes(log))
        await running.slaves[0].start()
        await sent(running.askers[0])
        await asyncio.sleep(30)
        assert running.slaves[0].server._store.log_end < running.master.server._store.log_end

    with caplog.at_level(logging.WARNING):
        play(test)
    assert "it has another message than this log" in caplog.text


def test_a_log_that_is_ahead_is_not_continued(caplog: pytest.LogCaptureFixture) -> None:
    async def test(running: BrokerGroup) -> None:
        for _ in range(3):
            await sent(running.askers[0])
        await running.equal()
        await running.master.stop()
        for name in ("commitlog", "consumequeue/T/0", "index"):
            for each in running.master.disk.names(f"/data/{name}"):
                running.master.disk.remove(f"/data/{name}/{each}")
        running.master.disk.remove("/data/checkpoint")
        await running.master.start()
        await asyncio.sleep(30)

    with caplog.at_level(logging.WARNING):
        play(test)
    assert "has messages that the master has not" in caplog.text


@pytest.mark.parametrize("mode", ["enforcing", "permissive"])
def test_a_cluster_with_tls_registers_and_replicates_over_it(
    authority: Authority, mode: str, caplog: pytest.LogCaptureFixture
) -> None:
    issued = authority.issue("cluster", names="DNS:cluster.example")
    tls = TlsConfig(
        mode=mode,
        certificate=issued.certificate,
        key=issued.key,
        client_certificates="require",
        authorities=authority.path,
        outgoing=True,
        outgoing_authorities=authority.path,
        outgoing_certificate=issued.certificate,
        outgoing_key=issued.key,
        outgoing_server_name="cluster.example",
    )

    async def main(network: Network) -> None:
        cluster = Cluster(
            network, slaves=1, broker=BrokerConfig(role="SYNC_MASTER"), store=SMALL_STORE, tls=tls
        )
        await cluster.start()
        await asyncio.sleep(5)
        process, world = cluster.client("client")
        config = ProducerConfig(**client_tls(authority, issued))

        async def send() -> None:
            addresses = cluster.nameserver_addresses
            async with Producer("p", nameservers=addresses, config=config, world=world) as one:
                for number in range(5):
                    await one.send(Message("Secret", b"%d" % number * 3_000))

        await process.start(send())
        slave = cluster.slaves[0].server
        assert slave._store.log_end == cluster.brokers[0].server._store.log_end > 15_000
        sender = cluster.brokers[0].server._parts.replication.sender
        (link,) = sender.links.values()
        assert link._transport.get_extra_info("ssl_object").version() == "TLSv1.3"
        if mode == "enforcing":
            _, writer = await asyncio.open_connection(cluster.brokers[0].address, 10912)
            writer.write(b"\0" * 8)
            await asyncio.sleep(1)
            assert writer.is_closing() or len(sender.links) == 1
        await cluster.stop()

    simulate(main)


def client_tls(authority: Authority, issued: Issued) -> dict[str, Any]:
    return {
        "tls": True,
        "tls_authorities": authority.path,
        "tls_certificate": issued.certificate,
        "tls_key": issued.key,
        "tls_server_name": "cluster.example",
    }
