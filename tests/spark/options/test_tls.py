"""TLS of the source and the sink."""

from __future__ import annotations

import pickle
from collections.abc import Iterator

import pytest

from sprocket.admin import brokers
from sprocket.base.errors import ConfigError, ConnectFailed
from sprocket.remoting.tls.settings import ClientTls, TlsConfig
from sprocket.spark.brokers.pool import ConnectionPool
from sprocket.spark.options.options import BatchOptions, read_options
from sprocket.spark.options.tls import tls_as_options
from sprocket.spark.options.write_options import write_options
from sprocket.spark.pipelines.parts.servers import Servers
from tests.certificates import Authority
from tests.cli.parts import running_node, sprocket

READ = {"namesrvAddr": "a:1", "subscribe": "orders"}


@pytest.fixture(scope="module")
def names(authority: Authority, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    issued = authority.issue("node")
    tls = TlsConfig(
        mode="enforcing",
        certificate=issued.certificate,
        key=issued.key,
        outgoing_authorities=authority.path,
    )
    with running_node(str(tmp_path_factory.mktemp("node")), tls) as names:
        yield names


def test_options_become_settings_that_reach_executors() -> None:
    given = {
        "useTLS": "true", "tlsAuthorities": "/ca.pem", "tlsCertificate": "/me.pem",
        "tlsKey": "/me.key", "tlsKeyPassword": "hush", "tlsCheck": "true", "tlsCheckName": "false",
        "tlsServerName": "brokers.example",
    }  # fmt: skip
    expected = ClientTls(
        authorities="/ca.pem", certificate="/me.pem", key="/me.key", key_password="hush",
        checks_name=False, server_name="brokers.example",
    )  # fmt: skip
    reading = read_options({**READ, **given}, BatchOptions)
    writing = write_options({"namesrvAddr": "a:1", **given})
    assert reading.tls == writing.tls == expected
    assert pickle.loads(pickle.dumps(reading)).tls == expected
    assert "hush" not in repr(reading) + repr(writing)
    assert tls_as_options(expected) == given
    assert read_options(READ, BatchOptions).tls is None


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"tlsAuthorities": "/ca.pem"}, "option tlsAuthorities is given, and useTLS is not true"),
        ({"tlsKey": "/me.key"}, "option tlsKey is given"),
        ({"tlsServerName": "broker"}, "option tlsServerName is given"),
        ({"tlsCheck": "false"}, "option tlsCheck is given"),
        ({"useTLS": "yes"}, "useTLS takes true or false"),
        ({"tls.client.trustCertPath": "/ca.pem"}, "did you mean tlsAuthorities"),
        ({"ssl": "true"}, "did you mean useTLS"),
    ],
)
def test_wrong_options_are_refused_by_name(given: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        read_options({**READ, **given}, BatchOptions)


def test_a_pipelines_cluster_passes_tls_on(names: str, authority: Authority) -> None:
    tls = ClientTls(authorities=authority.path)
    servers = Servers(names, tls=tls)
    assert servers.options() == {"namesrvAddr": names, **tls_as_options(tls)}
    (found,) = servers.ask(brokers.processes)
    assert found.broker == "broker-a"


def test_blocking_connections_speak_tls(names: str, authority: Authority) -> None:
    with_tls = ["--tls-authorities", authority.path, "-n", names]
    assert sprocket("topic", "create", "orders", *with_tls).code == 0
    with ConnectionPool([names], tls=ClientTls(authorities=authority.path)) as pool:
        assert {queue.broker for queue in pool.route("orders").readable} == {"broker-a"}


def test_blocking_connections_say_why_they_fail(names: str, authority: Authority) -> None:
    def why(tls: ClientTls | None) -> str:
        with ConnectionPool([names], tls=tls) as pool, pytest.raises(ConnectFailed) as told:
            pool.route("orders")
        return str(told.value)

    assert "is of an unknown authority" in why(ClientTls())
    wrong = ClientTls(authorities=authority.path, server_name="elsewhere.example")
    assert "for another name" in why(wrong)
    assert "cannot read /nowhere: No such file" in why(ClientTls(authorities="/nowhere"))


def test_a_second_cluster_has_tls_of_its_own_or_none() -> None:
    one, other = ClientTls(authorities="/one.pem"), ClientTls(authorities="/other.pem")
    servers = Servers("a:1", tls=one)
    assert servers.another("b:1", None, None).tls == one
    assert servers.another("b:1", None, other).tls == other
    assert servers.another("b:1", None, False).tls is None
    assert Servers("a:1").another("b:1", None, None).tls is None
