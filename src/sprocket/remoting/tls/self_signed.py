"""A certificate that a server makes for itself, so that clients which insist on TLS can connect.

It lives as long as the process and says nothing about who the server is: a client that checks
certificates refuses it, and one that does not can be deceived. RocketMQ's proxy has one in its
package for the same purpose (tlsTestModeEnable), with a key that everybody has.
"""

from __future__ import annotations

import datetime
import logging
import os
import tempfile
from collections.abc import Sequence

from sprocket.remoting.tls.certificates import WatchedFiles, new_server_side

logger = logging.getLogger(__name__)

_NAME = "sprocket"
#: Long enough for any process; some clients refuse longer times.
_DAYS = 397
#: Clocks that go slow must not see it before its time.
_DAYS_BEFORE = 1


def self_signed(protocols: Sequence[str]) -> WatchedFiles | None:
    """The certificate, in no file; None without the package `cryptography`, which makes it."""
    try:
        import cryptography  # noqa: F401 - only whether it is there
    except ImportError:
        return None
    made = new_server_side(protocols)
    with tempfile.TemporaryDirectory() as folder:  # Python takes certificates from files only
        path = os.path.join(folder, "own.pem")
        with open(path, "xb", opener=_for_us_only) as file:
            file.write(_new_pair())
        made.load_cert_chain(path)
    return WatchedFiles([], lambda: made)


def _for_us_only(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _new_pair() -> bytes:
    """Certificate and key in PEM."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, _NAME)])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=_DAYS_BEFORE))
        .not_valid_after(now + datetime.timedelta(days=_DAYS))
        .add_extension(
            x509.SubjectAlternativeName([x509.DNSName("localhost"), x509.DNSName(_NAME)]), False
        )
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), True)
        .sign(key, hashes.SHA256())
    )
    return certificate.public_bytes(serialization.Encoding.PEM) + key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
