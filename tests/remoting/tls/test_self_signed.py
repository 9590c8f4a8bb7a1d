"""A certificate that a server makes for itself."""

from __future__ import annotations

import ssl
import sys

import pytest

from sprocket.remoting.tls.self_signed import self_signed


def test_it_serves_who_does_not_check_and_nobody_else() -> None:
    pytest.importorskip("cryptography")
    files = self_signed(["h2"])
    assert files is not None
    serving = files.current(0.0)
    assert agreed(serving, ssl.CERT_NONE) == "h2"
    with pytest.raises(ssl.SSLCertVerificationError):
        agreed(serving, ssl.CERT_REQUIRED)


def test_every_process_has_its_own() -> None:
    pytest.importorskip("cryptography")
    one, other = self_signed([]), self_signed([])
    assert one is not None
    assert other is not None
    assert shown(one.current(0.0)) != shown(other.current(0.0))


def test_without_the_package_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cryptography", None)
    assert self_signed(["h2"]) is None


def client_of(serving: ssl.SSLContext, verify: ssl.VerifyMode) -> ssl.SSLObject:
    """A client after its handshake with a server, both in memory."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = verify
    context.set_alpn_protocols(["h2"])
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = context.wrap_bio(back, there)
    server = serving.wrap_bio(there, back, server_side=True)
    for side in (client, server, client, server):
        try:
            side.do_handshake()
        except ssl.SSLWantReadError:
            continue
    return client


def agreed(serving: ssl.SSLContext, verify: ssl.VerifyMode) -> str | None:
    return client_of(serving, verify).selected_alpn_protocol()


def shown(serving: ssl.SSLContext) -> bytes | None:
    return client_of(serving, ssl.CERT_NONE).getpeercert(binary_form=True)
