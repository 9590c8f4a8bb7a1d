"""The settings of TLS under RocketMQ's names and ours."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from sprocket.base.config import check
from sprocket.base.config_files import ConfigFile, load
from sprocket.base.errors import ConfigError
from sprocket.broker.config import BrokerConfig
from sprocket.client.config import ClientConfig, ProducerConfig
from sprocket.remoting.tls.settings import ClientTls, TlsConfig, checked_settings

JAVAS = """
tls.test.mode.enable=false
tls.server.mode=enforcing
tls.server.need.client.auth=require
tls.server.keyPath=/certs/server.key
tls.server.keyPassword=123456
tls.server.certPath=/certs/server.pem
tls.server.authClient=false
tls.server.trustCertPath=/certs/ca.pem
tls.client.keyPath=/certs/client.key
tls.client.keyPassword=654321
tls.client.certPath=/certs/client.pem
tls.client.authServer=false
tls.client.trustCertPath=/certs/others.pem
"""


def test_rocketmqs_keys_mean_the_same_here() -> None:
    loaded = load([BrokerConfig, TlsConfig], file=ConfigFile("broker.conf", JAVAS))
    tls = loaded.of(TlsConfig)
    assert (tls.mode, tls.certificate, tls.key) == (
        "enforcing", "/certs/server.pem", "/certs/server.key",
    )  # fmt: skip
    assert (tls.client_certificates, tls.authorities) == ("require", "/certs/ca.pem")
    assert tls.key_password == "123456"
    assert tls.outgoing_tls() == ClientTls(
        authorities="/certs/others.pem", certificate="/certs/client.pem", key="/certs/client.key",
        key_password="654321", checks=False,
    )  # fmt: skip
    assert "123456" not in repr(tls)
    assert "654321" not in repr(tls) + repr(tls.outgoing_tls())


@pytest.mark.parametrize(
    ("text", "is_outgoing"),
    [
        ("tls.server.mode=permissive", False),
        ("tls.server.mode=enforcing\ntls.server.certPath=/a", True),
        ("tls.server.mode=enforcing\ntls.server.certPath=/a\ntls.enable=false", False),
        ("tls.enable=true", True),
        ("useTLS=true", True),
    ],
)
def test_a_brokers_own_connections_use_tls_as_those_of_javas(text: str, is_outgoing: bool) -> None:
    loaded = load([BrokerConfig, TlsConfig], file=ConfigFile("broker.conf", text))
    assert (loaded.of(TlsConfig).outgoing_tls() is not None) == is_outgoing
    assert not loaded.notes


def test_a_clients_keys_of_rocketmq_mean_the_same_here() -> None:
    text = "useTLS=true\ntls.client.trustCertPath=/ca.pem\ntls.client.authServer=true\n"
    config = load([ClientConfig], file=ConfigFile("client.properties", text)).of(ClientConfig)
    assert config.tls_of_client() == ClientTls(authorities="/ca.pem")
    assert ClientConfig().tls_of_client() is None


def test_tls_belongs_to_what_clients_with_shared_connections_have_in_common() -> None:
    one = ProducerConfig(tls=True, tls_authorities="/a.pem", tls_key_password="hush")
    assert one.shared().tls_of_client() == one.tls_of_client()
    assert one.shared() != ProducerConfig(tls=True, tls_authorities="/b.pem").shared()
    assert "hush" not in repr(one)
    assert pickle.loads(pickle.dumps(one.tls_of_client())) == one.tls_of_client()


@pytest.mark.parametrize(
    ("config", "what"),
    [
        (TlsConfig(mode="enforcing"), "needs tls.certificate"),
        (TlsConfig(key="/k"), "needs tls.certificate"),
        (TlsConfig(certificate="/c", client_certificates="require"), "needs tls.authorities"),
        (TlsConfig(certificate="/c", client_certificates="optional"), "needs tls.authorities"),
        (TlsConfig(outgoing_key="/k"), "needs tls.outgoing_certificate"),
        (TlsConfig(mode="sometimes"), "is one of disabled, permissive, enforcing"),
        (TlsConfig(certificate="~/c.pem"), "a path in full"),
    ],
)
def test_what_lacks_something_is_refused(config: TlsConfig, what: str) -> None:
    with pytest.raises(ConfigError, match=what):
        check(config)


def test_a_permissive_server_without_a_certificate_is_plain() -> None:
    assert not TlsConfig().is_serving
    assert TlsConfig(certificate="/c").is_serving
    assert not TlsConfig(certificate="/c", mode="disabled").is_serving


def test_rocketmqs_file_of_tls_settings_is_read_and_wins(tmp_path: Path) -> None:
    file = tmp_path / "tls.properties"
    file.write_text(JAVAS)
    text = f"tls.config.file={file}\ntls.server.keyPath=/other.key\n"
    config = load([TlsConfig], file=ConfigFile("broker.conf", text)).of(TlsConfig)
    with pytest.raises(ConfigError, match="not read yet"):
        checked_settings(config)
    whole = config.whole()
    assert (whole.mode, whole.key, whole.file) == ("enforcing", "/certs/server.key", None)
    assert whole.handshake_ms == config.handshake_ms
    assert checked_settings(whole) is whole
    file.write_text("tls.server.certPat=/a")
    with pytest.raises(ConfigError, match=r"tls\.properties:1: unknown setting.*certPath"):
        config.whole()
    file.unlink()
    with pytest.raises(ConfigError, match="cannot read"):
        config.whole()
