"""A name server and a broker in one loop."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from sprocket import Message, Producer, PushConsumer, Standalone
from sprocket.base.errors import DirectoryInUse, UsageError
from sprocket.broker.config import BrokerConfig
from sprocket.client import blocking
from sprocket.client.config import ConsumerConfig, ProducerConfig
from sprocket.nameserver.config import NameServerConfig
from sprocket.proxy.config import ProxyConfig
from sprocket.remoting.tls.settings import TlsConfig
from sprocket.runtime.disk import SystemDisk
from sprocket.store.config import StoreConfig
from tests.certificates import Authority
from tests.support import run


def test_it_serves_and_its_temporary_store_is_gone_after() -> None:
    async def story() -> str:
        async with Standalone() as node:
            async with Producer("app", nameservers=node.nameserver_address) as producer:
                sent = await producer.send(Message("orders", b"one coffee"))
                assert sent.queue_offset == 0
            assert node.store is not None
            assert SystemDisk().names(f"{node.store}/commitlog")
            return node.store

    assert SystemDisk().names(run(story())) == []


def test_a_store_of_its_own_is_kept(tmp_path: Path) -> None:
    async def send() -> int:
        async with (
            Standalone(store=tmp_path) as node,
            Producer("app", nameservers=node.nameserver_address) as producer,
        ):
            (queue, *_) = await producer.queues("orders")
            return (await producer.send(Message("orders", b"x"), queue=queue)).queue_offset

    assert run(send()) == 0
    assert run(send()) == 1


def test_it_can_be_started_again() -> None:
    async def story() -> None:
        node = Standalone()
        for _ in range(2):
            async with node:
                assert node.broker_address
        with pytest.raises(UsageError, match="does not run"):
            _ = node.broker_address
        with pytest.raises(UsageError, match="does not run"):
            _ = node.nameserver_address
        with pytest.raises(UsageError, match="does not run"):
            await node.serve()

    run(story())


def test_two_of_them_do_not_share_a_store(tmp_path: Path) -> None:
    async def story() -> None:
        async with Standalone(store=tmp_path) as node:
            with pytest.raises(DirectoryInUse):
                await Standalone(store=tmp_path).__aenter__()
            with pytest.raises(UsageError, match="runs already"):
                await node.__aenter__()

    run(story())


def test_a_port_in_use_ends_the_start_and_leaves_nothing_behind(tmp_path: Path) -> None:
    async def story() -> None:
        async with Standalone() as first:
            port = int(first.broker_address.rpartition(":")[2])
            with pytest.raises(UsageError, match=first.broker_address):
                await Standalone(store=tmp_path, broker_port=port).__aenter__()
            async with Standalone(store=tmp_path):
                pass

    run(story())


def test_settings_of_its_parts_are_obeyed() -> None:
    async def story() -> None:
        configs = [
            BrokerConfig(name="b-7", port=0),
            NameServerConfig(port=0),
            StoreConfig(message_bytes_max=10),
        ]
        async with (
            Standalone(configs=configs) as node,
            Producer("app", nameservers=node.nameserver_address) as producer,
        ):
            sent = await producer.send(Message("orders", b"short"))
            assert sent.queue.broker == "b-7"

    run(story())


def test_an_address_has_its_connections_at_the_brokers_port_and_at_the_proxys_together() -> None:
    async def is_closed(address: str, seconds: float) -> bool:
        """Whether a new connection is closed within that time. It stays open otherwise."""
        host, port = address.rsplit(":", 1)
        reader, writer = await asyncio.open_connection(host, int(port))
        lines.append(writer)
        try:
            async with asyncio.timeout(seconds):
                while await reader.read(1_000):
                    pass
        except TimeoutError:
            return False
        except ConnectionError:
            pass
        return True

    async def story() -> None:
        broker = BrokerConfig(port=0, quotas=("ip 127.0.0.1 connections=3",))
        configs = [broker, NameServerConfig(port=0), ProxyConfig(port=0)]
        async with Standalone(configs=configs) as node:
            grpc = node.grpc_address
            assert grpc is not None
            for each in (grpc, grpc, node.broker_address):
                assert not await is_closed(each, 0.1)
            for each in (grpc, node.broker_address):
                assert await is_closed(each, 60.0)
            for line in lines:
                line.close()

    lines: list[asyncio.StreamWriter] = []
    run(story())


def test_an_ipv6_address_is_served() -> None:
    async def story() -> None:
        async with Standalone(host="::1") as node:
            assert node.nameserver_address.startswith("[::1]:")
            async with Producer("app", nameservers=node.nameserver_address) as producer:
                assert (await producer.send(Message("orders", b"x"))).queue_offset == 0

    run(story())


def test_serving_lasts_until_it_is_cancelled() -> None:
    async def story() -> None:
        async with Standalone() as node:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.01):
                    await node.serve()

    run(story())


def test_with_enforcing_tls_everything_works_for_those_who_trust_it(
    authority: Authority, tmp_path: Path
) -> None:
    issued = authority.issue("node")
    file = tmp_path / "tls.properties"
    file.write_text(
        f"tls.server.mode=enforcing\ntls.server.certPath={issued.certificate}\n"
        f"tls.server.keyPath={issued.key}\ntls.client.trustCertPath={authority.path}\n"
    )
    trusted = {"tls": True, "tls_authorities": authority.path}

    async def story() -> list[bytes]:
        async with Standalone(configs=[TlsConfig(file=str(file))]) as node:
            where = node.nameserver_address
            config = ProducerConfig(**trusted)  # type: ignore[arg-type]

            def blocked() -> None:
                with blocking.Producer("b", nameservers=where, config=config) as producer:
                    producer.send(Message("orders", b"two"))

            async with Producer("app", nameservers=where, config=config) as producer:
                await producer.send(Message("orders", b"one"))
                await asyncio.to_thread(blocked)
            got: list[bytes] = []
            reading = ConsumerConfig(**trusted)  # type: ignore[arg-type]
            async with PushConsumer(
                "g", nameservers=where, config=reading, start="first"
            ) as consumer:
                consumer.subscribe("orders")
                async for message in consumer:
                    got.append(message.body)
                    if len(got) == 2:
                        return sorted(got)
        raise AssertionError("not reached")

    assert run(story()) == [b"one", b"two"]
