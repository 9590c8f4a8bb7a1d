"""TLS between Java's clients, servers and admin tool and ours, with real checks on both sides."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sprocket import Message, Producer, PullConsumer
from sprocket.client.config import ProducerConfig, PullConfig
from tests.certificates import Authority
from tests.compat.javaland import (
    JavaAdmin,
    JavaBroker,
    JavaDriver,
    JavaNameServer,
    mqadmin,
    queued,
    require_java,
)
from tests.compat.sprocketland import Settings, SprocketNode
from tests.support import PATIENT_MS, run

pytestmark = pytest.mark.java


@pytest.fixture(scope="module")
def strict(
    authority: Authority, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SprocketNode]:
    """A node of ours that takes TLS only, and only clients with a certificate."""
    require_java()
    issued = authority.issue("node")
    settings: Settings = {
        "tls.mode": "enforcing",
        "tls.certificate": issued.certificate,
        "tls.key": issued.key,
        "tls.client_certificates": "require",
        "tls.authorities": authority.path,
        "tls.outgoing_authorities": authority.path,
        "tls.outgoing_certificate": issued.certificate,
        "tls.outgoing_key": issued.key,
    }
    with SprocketNode(tmp_path_factory.mktemp("strict"), settings=settings) as running:
        yield running


def javas(authority: Authority, name: str) -> dict[str, str]:
    """A Java client that checks servers and shows a certificate of its own."""
    issued = authority.issue(name)
    return {
        "tls.enable": "true",
        "tls.test.mode.enable": "false",
        "tls.client.authServer": "true",
        "tls.client.trustCertPath": authority.path,
        "tls.client.certPath": issued.certificate,
        "tls.client.keyPath": issued.key,
    }


@pytest.mark.parametrize("version", ["4.9.8", "5.3.3"])
def test_java_clients_with_certificates_send_to_and_read_from_ours(
    strict: SprocketNode, authority: Authority, tmp_path: Path, version: str
) -> None:
    topic = f"Secret{version.replace('.', '_')}"
    properties = javas(authority, "java-client")
    with JavaDriver(version, work=tmp_path, properties=properties) as driver:
        driver.call("producer.start", group="p", namesrv=strict.names)
        for number in range(3):
            driver.call("producer.send", topic=topic, text=f"m{number}" * 10_000)
        driver.call("consumer.start", group=f"g-{topic}", namesrv=strict.names, topic=topic)
        got = driver.wait_messages(3)
    assert sorted(each["body"] for each in got) == [b"m%d" % number * 10_000 for number in range(3)]


def test_mqadmin_with_a_certificate_operates_ours(
    strict: SprocketNode, authority: Authority, tmp_path: Path
) -> None:
    with JavaAdmin(tmp_path, javas(authority, "operator")) as admin:
        shown = admin.run("clusterList", "-n", strict.names, within=120.0)
        assert strict.address in shown
        made = admin.run(
            "updateTopic", "-n", strict.names, "-b", strict.address, "-t", "Made", within=120.0
        )
        assert f"create topic to {strict.address} success" in made


def test_without_a_certificate_mqadmin_and_plain_clients_are_refused(
    strict: SprocketNode, tmp_path: Path
) -> None:
    with JavaAdmin(tmp_path, {"tls.enable": "true"}) as admin:
        assert strict.address not in admin.run("clusterList", "-n", strict.names, within=120.0)
    assert strict.address not in mqadmin("clusterList", namesrv=strict.names)


def test_our_permissive_port_takes_java_with_tls_and_without(
    authority: Authority, tmp_path: Path
) -> None:
    require_java()
    issued = authority.issue("node")
    settings = {"tls.certificate": issued.certificate, "tls.key": issued.key}
    with SprocketNode(tmp_path, settings=settings) as node:
        for name, uses_tls in (("with", "true"), ("without", "false")):
            work = tmp_path / name
            work.mkdir()
            with JavaDriver(work=work, properties={"tls.enable": uses_tls}) as driver:
                driver.call("producer.start", group="p", namesrv=node.names)
                driver.call("producer.send", topic="Both", text=name)
        printed = mqadmin("topicStatus", "-t", "Both", namesrv=node.names)
        ends = [line.split()[3] for line in printed.splitlines() if line.startswith("broker-a")]
        assert sum(map(int, ends)) == 2


def test_our_clients_check_and_use_javas_servers_with_tls(
    authority: Authority, tmp_path: Path
) -> None:
    require_java()
    issued = authority.issue("java-server")
    serving = [
        "-Dtls.server.mode=permissive",
        "-Dtls.test.mode.enable=false",
        f"-Dtls.server.certPath={issued.certificate}",
        f"-Dtls.server.keyPath={issued.key}",
        "-Dtls.server.need.client.auth=require",
        "-Dtls.server.authClient=true",
        f"-Dtls.server.trustCertPath={authority.path}",
    ]
    mine = authority.issue("python-client")
    ours = {
        "tls": True,
        "tls_authorities": authority.path,
        "tls_certificate": mine.certificate,
        "tls_key": mine.key,
        "call_timeout_ms": PATIENT_MS,
    }
    bodies = [b"%d" % number * 50_000 for number in range(4)]
    with (
        JavaNameServer(tmp_path, jvm=serving) as names,
        JavaBroker(tmp_path, names.address, jvm=serving) as broker,
    ):

        async def main() -> list[bytes]:
            sending = ProducerConfig(send_timeout_ms=PATIENT_MS, **ours)
            async with Producer("p", nameservers=names.address, config=sending) as producer:
                sent = [await producer.send(Message("Secret", body)) for body in bodies]
            queues = {each.queue for each in sent}
            async with PullConsumer(
                "g", nameservers=names.address, config=PullConfig(**ours)
            ) as reader:
                found = []
                for queue in queues:
                    end = 1 + max(each.queue_offset for each in sent if each.queue == queue)
                    await queued(reader, queue, end)
                    found += (await reader.pull(queue, 0)).messages
                return sorted(each.body for each in found)

        assert run(main()) == bodies
        assert broker.is_running
