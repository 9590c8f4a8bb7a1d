"""A name server on real sockets."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from sprocket.audit.config import AuditConfig
from sprocket.base.deadline import Deadline
from sprocket.base.errors import (
    ConfigError,
    CorruptRecord,
    ReplyError,
    SystemBusy,
    TopicNotFound,
    TransportError,
    UsageError,
)
from sprocket.nameserver.config import NameServerConfig
from sprocket.nameserver.nameserver import NameServer
from sprocket.protocol import registration
from sprocket.protocol.bodies import RegisterBody, Route, TopicConfig, TopicTable
from sprocket.protocol.command import Command, Header, Reply
from sprocket.protocol.requests import route
from sprocket.remoting.endpoints import one_by_one
from sprocket.remoting.pool import Pool
from sprocket.remoting.server import Server
from sprocket.remoting.transport import Peer
from tests.support import run


def ask(pool: Pool, server: NameServer, header: Header, body: bytes = b"") -> asyncio.Task[Command]:
    return asyncio.create_task(
        pool.ask(server.address, header, body=body, deadline=Deadline.after(10))
    )


async def register(pool: Pool, server: NameServer, **more: int | str) -> None:
    topics = {"orders": TopicConfig(topic_name="orders")}
    body = registration.encode(RegisterBody(topics=TopicTable(topic_config_table=topics)))
    header = route.RegisterBroker(
        broker_name="a", broker_addr="10.0.0.1:1", cluster_name="c", broker_id=0
    )
    for name, value in more.items():
        setattr(header, name, value)
    await ask(pool, server, header, body)


async def until_gone(pool: Pool, server: NameServer) -> None:
    """Returns when the route of `orders` is gone."""
    while True:
        try:
            await ask(pool, server, route.RouteOfTopic(topic="orders"))
        except TopicNotFound:
            return


def test_a_registered_broker_is_found_by_clients() -> None:
    async def story() -> None:
        async with NameServer(NameServerConfig(port=0)) as server, Pool() as pool:
            await register(pool, server)
            reply = await ask(pool, server, route.RouteOfTopic(topic="orders"))
            found = Route.decode(reply.body)
            assert found.broker_datas[0].broker_addrs == {0: "10.0.0.1:1"}

    run(story())


def test_its_settings_tell_the_port_it_got() -> None:
    async def story() -> None:
        async with NameServer(NameServerConfig(port=0)) as server, Pool() as pool:
            reply = await ask(pool, server, route.ReadNameServerConfig())
            port = server.address.rpartition(":")[2]
            assert f"listenPort={port}\n" in bytes(reply.body).decode()

    run(story())


def test_a_broker_goes_with_its_connection() -> None:
    async def story() -> None:
        async with NameServer(NameServerConfig(port=0)) as server, Pool() as client:
            async with Pool() as broker:
                await register(broker, server)
                await register(broker, server)
            await until_gone(client, server)

    run(story())


def test_a_silent_broker_is_taken_off_and_its_connection_closed() -> None:
    async def story() -> None:
        config = NameServerConfig(port=0, scan_ms=10)
        async with NameServer(config) as server, Pool() as client, Pool() as broker:
            await register(broker, server, heartbeat_timeout_millis=1)
            await until_gone(client, server)

    run(story())


def test_key_value_settings_outlive_the_name_server(tmp_path: Path) -> None:
    path = str(tmp_path / "new" / "kvConfig.json")

    async def put(value: str) -> None:
        async with NameServer(NameServerConfig(port=0, kv_path=path)) as server, Pool() as pool:
            await ask(pool, server, route.PutKv(namespace="n", key="k", value=value))

    async def get() -> str | None:
        async with NameServer(NameServerConfig(port=0, kv_path=path)) as server, Pool() as pool:
            reply = await ask(pool, server, route.GetKv(namespace="n", key="k"))
            return reply.read(route.KvReply).value

    run(put("1"))
    run(put("2"))
    assert run(get()) == "2"
    Path(path).write_bytes(b"\0" * 20)
    assert run(get()) == "1"  # from the backup
    Path(f"{path}.bak").write_bytes(b"")
    with pytest.raises(CorruptRecord, match="no key-value settings"):
        run(get())


def test_settings_that_cannot_be_kept_are_told_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    async def story(path: Path) -> None:
        async with NameServer(NameServerConfig(port=0, kv_path=str(path))):
            pass

    with pytest.raises(OSError, match="file"):
        run(story(tmp_path / "file" / "kvConfig.json"))
    run(story(tmp_path / "new" / "kvConfig.json"))
    assert list((tmp_path / "new").iterdir()) == []


def test_a_port_in_use_is_named() -> None:
    async def story() -> None:
        async with NameServer(NameServerConfig(port=0)) as server:
            port = int(server.address.rpartition(":")[2])
            with pytest.raises(UsageError, match=server.address):
                await NameServer(NameServerConfig(port=port)).__aenter__()

    run(story())


def test_one_that_cannot_listen_leaves_its_audit_log_to_the_next(tmp_path: Path) -> None:
    async def story() -> None:
        audit = AuditConfig(enabled=True, path=str(tmp_path))
        async with NameServer(NameServerConfig(port=0)) as server:
            port = int(server.address.rpartition(":")[2])
            with pytest.raises(UsageError, match=server.address):
                await NameServer(NameServerConfig(port=port), audit=audit).__aenter__()
            async with NameServer(NameServerConfig(port=0), audit=audit):
                pass

    run(story())


def test_a_wrong_setting_is_named() -> None:
    with pytest.raises(ConfigError, match=r"nameserver\.port is at most 65535"):
        NameServer(NameServerConfig(port=70_000))


def test_an_ipv6_address_is_served() -> None:
    async def story() -> None:
        async with NameServer(NameServerConfig(host="::1", port=0)) as server, Pool() as pool:
            assert server.address.startswith("[::1]:")
            with pytest.raises(ReplyError):
                await ask(pool, server, route.RouteOfTopic(topic="orders"))

    run(story())


def test_slaves_are_notified_of_the_smallest_number_where_that_is_switched_on() -> None:
    async def story(is_on: bool) -> None:
        told: list[route.SmallestNumberChanged] = []
        heard = asyncio.Event()

        def take(command: Command, peer: Peer) -> Reply:
            told.append(command.read(route.SmallestNumberChanged))
            heard.set()
            return Reply()

        config = NameServerConfig(port=0, notify_smallest=is_on)
        async with (
            Server(one_by_one(take), host="127.0.0.1") as slave,
            NameServer(config) as server,
            Pool() as pool,
        ):
            async with Pool() as master:
                await register(master, server, enable_acting_master=True)
                await register(
                    pool, server, broker_id=1, broker_addr=slave.address, enable_acting_master=True
                )
            if is_on:
                await heard.wait()
                assert told[0].min_broker_id == 1
                assert told[0].min_broker_addr == slave.address
                assert told[0].offline_broker_addr == "10.0.0.1:1"
            else:
                await until_gone_from(pool, server, "10.0.0.1:1")
                assert not told

    run(story(True))
    run(story(False))


async def until_gone_from(pool: Pool, server: NameServer, address: str) -> None:
    """Returns when an address is gone from the route of `orders`."""
    while True:
        reply = await ask(pool, server, route.RouteOfTopic(topic="orders"))
        if address not in Route.decode(reply.body).broker_datas[0].broker_addrs.values():
            return


def test_an_address_that_asks_too_much_is_refused_and_brokers_stay_registered(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def story() -> None:
        config = NameServerConfig(port=0, quotas=("ip * requests=1/20 connections=2",))
        async with NameServer(config) as server, Pool() as pool:
            await register(pool, server)
            asked = [ask(pool, server, route.RouteOfTopic(topic="orders")) for _ in range(200)]
            outcomes = await asyncio.gather(*asked, return_exceptions=True)
            refused = [each for each in outcomes if isinstance(each, SystemBusy)]
            assert len(outcomes) - len(refused) == pytest.approx(18, abs=3)
            assert "over its limit of 1 requests a second" in refused[0].remark
            await register(pool, server)
            async with Pool() as second, Pool() as third:
                await register(second, server, broker_name="b")
                with pytest.raises(TransportError):
                    await register(third, server, broker_name="c")
            lines = b"ip * requests=none"
            await ask(pool, server, route.UpdateNameServerConfig(), b"nameserver.quotas=" + lines)
            shown = await ask(pool, server, route.ReadNameServerConfig())
            assert b"nameserver.quotas=" + lines in bytes(shown.body)
            for _ in range(50):
                await ask(pool, server, route.RouteOfTopic(topic="orders"))

    run(story())
    assert any("its limit: further ones are closed" in each.message for each in caplog.records)


def test_changes_of_its_own_settings_act_at_once_and_outlive_it(tmp_path: Path) -> None:
    path = str(tmp_path / "kvConfig.json")

    async def story(*lines: str, topics_max: int = 5) -> dict[str, str]:
        config = NameServerConfig(port=0, kv_path=path, topics_max=topics_max)
        async with NameServer(config) as server, Pool() as pool:
            body = "".join(f"{line}\n" for line in lines).encode()
            reply = await ask(pool, server, route.UpdateNameServerConfig(), body)
            assert reply.code == 0, reply.remark
            assert server.routes._absent_are_deleted
            shown = await ask(pool, server, route.ReadNameServerConfig())
            return dict(each.split("=", 1) for each in bytes(shown.body).decode().splitlines())

    run(story("deleteTopicWithBrokerRegistration=true", "nameserver.topics_max=7"))
    shown = run(story())
    assert (shown["deleteTopicWithBrokerRegistration"], shown["nameserver.topics_max"]) == (
        "true",
        "7",
    )
    assert run(story(topics_max=9))["nameserver.topics_max"] == "9"
