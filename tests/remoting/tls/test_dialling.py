"""What a client sees: whom it trusts, whom it does not, and why."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from sprocket.base.errors import ConfigError, ConnectFailed, ConnectionLost
from sprocket.remoting.pool import Pool
from sprocket.remoting.tls.settings import ClientTls, TlsConfig
from tests.certificates import Authority
from tests.remoting.parts import soon
from tests.remoting.tls.parts import echoed, pair, serving_with, showing, trusting
from tests.support import run


def outcome(server_tls: TlsConfig | None, client_tls: ClientTls) -> bytes:
    async def main() -> bytes:
        async with pair(server_tls, client_tls) as (server, pool):
            return await echoed(server, pool)

    return run(main())


def test_an_expired_certificate_is_named(authority: Authority) -> None:
    with pytest.raises(ConnectFailed, match=r"127\.0\.0\.1:\d+ .*certificate.* has expired"):
        outcome(serving_with(authority.issue("old", is_expired=True)), trusting(authority))


def test_an_unknown_authority_is_named(authority: Authority, tmp_path: Path) -> None:
    stranger = Authority(tmp_path / "stranger", "stranger")
    with pytest.raises(ConnectFailed, match="of an unknown authority"):
        outcome(serving_with(stranger.issue("server")), trusting(authority))


def test_a_certificate_that_its_owner_signed_is_unknown_too(authority: Authority) -> None:
    itself = TlsConfig(certificate=authority.path, key=str(authority.folder / "ca.key"))
    with pytest.raises(ConnectFailed, match="of an unknown authority"):
        outcome(itself, ClientTls())


def test_a_wrong_name_is_named(authority: Authority) -> None:
    elsewhere = serving_with(authority.issue("elsewhere", names="DNS:elsewhere.example"))
    with pytest.raises(ConnectFailed, match=r"another name: .*not valid for '127\.0\.0\.1'"):
        outcome(elsewhere, trusting(authority))
    assert outcome(elsewhere, trusting(authority, checks_name=False)) == b"body"
    assert outcome(elsewhere, trusting(authority, server_name="elsewhere.example")) == b"body"


@pytest.mark.parametrize("name", ["old", "elsewhere", "foreign"])
def test_without_checks_everything_is_taken(
    authority: Authority, tmp_path: Path, name: str
) -> None:
    issued = {
        "old": lambda: authority.issue("old", is_expired=True),
        "elsewhere": lambda: authority.issue("elsewhere", names="DNS:elsewhere.example"),
        "foreign": lambda: Authority(tmp_path / "stranger").issue("server"),
    }[name]()
    assert outcome(serving_with(issued), trusting(authority, checks=False)) == b"body"


def test_a_server_without_tls_is_named() -> None:
    with pytest.raises(ConnectFailed, match="perhaps TLS is off there"):
        outcome(None, ClientTls(checks=False))


def test_a_port_that_answers_something_else_is_named() -> None:
    async def main() -> None:
        def greets(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"220 mail.example\r\n")
            writer.close()

        async with await asyncio.start_server(greets, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            async with Pool(tls=ClientTls(checks=False)) as pool:
                with pytest.raises(ConnectFailed, match="the other side speaks no TLS"):
                    await pool.peer(f"127.0.0.1:{port}", soon())

    run(main())


@pytest.mark.parametrize(
    ("asked", "shown", "what"),
    [
        ("none", None, None),
        ("optional", None, None),
        ("optional", "mine", None),
        ("optional", "foreign", "does not know the authority"),
        ("require", "mine", None),
        ("require", None, "demands a certificate, and none was shown"),
        ("require", "foreign", "does not know the authority"),
        ("require", "old", "certificate has expired"),
    ],
)
def test_certificates_of_clients(
    authority: Authority, tmp_path: Path, asked: str, shown: str | None, what: str | None
) -> None:
    more: dict[str, Any] = {"client_certificates": asked, "authorities": authority.path}
    server = serving_with(authority.issue("server"), **more)
    client = trusting(authority)
    if shown == "foreign":
        client = showing(authority, Authority(tmp_path / "stranger").issue("client"))
    elif shown is not None:
        client = showing(authority, authority.issue(shown, is_expired=shown == "old"))
    if what is None:
        assert outcome(server, client) == b"body"
    else:
        with pytest.raises((ConnectFailed, ConnectionLost), match=what):
            outcome(server, client)


@pytest.mark.parametrize("side", ["server", "client"])
def test_files_that_cannot_be_used_are_named(
    authority: Authority, tmp_path: Path, side: str
) -> None:
    one, other = authority.issue("one"), authority.issue("other")
    locked = authority.issue("locked", password="open sesame")
    empty = tmp_path / "empty.pem"
    empty.write_text("")
    torn = tmp_path / "torn.pem"
    torn.write_text(Path(one.certificate).read_text()[:300] + "\n-----END CERTIFICATE-----\n")

    def refused(certificate: str, key: str, password: str | None = None) -> str:
        given: dict[str, Any] = {"certificate": certificate, "key": key, "key_password": password}
        server, client = serving_with(one), trusting(authority)
        if side == "server":
            server = TlsConfig(**given)
        else:
            client = trusting(authority, **given)
        with pytest.raises(ConfigError) as told:
            outcome(server, client)
        return str(told.value)

    missing = str(tmp_path / "missing.pem")
    assert refused(missing, one.key) == f"cannot read {missing}: No such file or directory"
    assert refused(one.certificate, missing) == f"cannot read {missing}: No such file or directory"
    assert "Is a directory" in refused(str(tmp_path), one.key)
    assert "does not belong to the certificate" in refused(one.certificate, other.key)
    assert "has no certificate in PEM" in refused(str(empty), one.key)
    assert "has no private key in PEM" in refused(one.certificate, str(empty))
    assert "cannot be used" in refused(str(torn), one.key)
    assert "is encrypted, and no password" in refused(locked.certificate, locked.key)
    assert "the password does not open" in refused(locked.certificate, locked.key, "wrong")


def test_an_encrypted_key_is_opened_by_its_password(authority: Authority) -> None:
    locked = authority.issue("locked", password="open sesame")
    assert outcome(serving_with(locked, key_password="open sesame"), trusting(authority)) == b"body"


def test_authorities_that_cannot_be_read_are_named(authority: Authority) -> None:
    one = authority.issue("one")
    with pytest.raises(ConfigError, match=r"cannot read /nowhere/ca\.pem"):
        outcome(serving_with(one), ClientTls(authorities="/nowhere/ca.pem"))
    with pytest.raises(ConfigError, match="has no certificate in PEM"):
        outcome(serving_with(one), ClientTls(authorities=one.key))
