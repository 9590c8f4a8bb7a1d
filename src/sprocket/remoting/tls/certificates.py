"""Certificates, keys and authorities in files: read with clear errors, and read again on a change.

A changed file counts for the next connection; those that are open stay. If the new files do not go
together, the old ones stay in use: certificate and key are replaced one after the other, so a
warning comes only when they have not fitted for a while.
"""

from __future__ import annotations

import logging
import os
import ssl
from collections.abc import Callable, Sequence
from typing import NamedTuple

from sprocket.base.errors import ConfigError
from sprocket.remoting.tls.settings import NONE, REQUIRE, ClientTls, TlsConfig, read_file

logger = logging.getLogger(__name__)

#: How often files are looked at, at most, as in RocketMQ's FileWatchService, s.
LOOK_SECONDS = 0.5
#: How long new files may not go together before that is a warning, s.
_UNFIT_SECONDS = 3.0
_CERTIFICATE = b"-----BEGIN CERTIFICATE-----"


class KeyPair(NamedTuple):
    """Where a certificate and its key are.

    Attributes:
        certificate: file of the certificate and its chain.
        key: file of the key; None if it is in the same file.
        password: opens the key.
    """

    certificate: str
    key: str | None
    password: str | None

    def __repr__(self) -> str:
        return f"KeyPair(certificate={self.certificate!r}, key={self.key!r})"


def serving(config: TlsConfig, protocols: Sequence[str] = ()) -> ssl.SSLContext:
    """What a server needs for its handshakes.

    Args:
        protocols: what it speaks above TLS, for clients that ask (ALPN).

    Raises:
        ConfigError: a file cannot be read, or the files do not go together.
    """
    assert config.certificate is not None
    made = new_server_side(protocols)
    _take_pair(made, KeyPair(config.certificate, config.key, config.key_password))
    if config.client_certificates != NONE and config.authorities is not None:
        is_needed = config.client_certificates == REQUIRE
        made.verify_mode = ssl.CERT_REQUIRED if is_needed else ssl.CERT_OPTIONAL
        _take_authorities(made, config.authorities)
    if (fault := _fault_of_own(made, config.certificate)) is not None:
        logger.warning("clients will refuse the certificate in %s: %s", config.certificate, fault)
    return made


def new_server_side(protocols: Sequence[str]) -> ssl.SSLContext:
    """A server's side of handshakes, without a certificate yet."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    # Renegotiation lets a client have one handshake after the other on one connection.
    made.options |= ssl.OP_NO_RENEGOTIATION
    if protocols:
        made.set_alpn_protocols(protocols)
    return made


def asking(tls: ClientTls) -> ssl.SSLContext:
    """What a client needs for its handshakes.

    Raises:
        ConfigError: a file cannot be read, or the files do not go together.
    """
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.check_hostname = tls.checks and tls.checks_name
    if not tls.checks:
        made.verify_mode = ssl.CERT_NONE
    elif tls.authorities is None:
        made.load_default_certs(ssl.Purpose.SERVER_AUTH)
    else:
        _take_authorities(made, tls.authorities)
    if tls.certificate is not None:
        _take_pair(made, KeyPair(tls.certificate, tls.key, tls.key_password))
    return made


class WatchedFiles:
    """What is made from files, and made again when they have changed.

    Args:
        paths: the files.
        make: makes it; raises ConfigError.
    """

    def __init__(self, paths: list[str], make: Callable[[], ssl.SSLContext]) -> None:
        self._paths = paths
        self._make = make
        self._made: ssl.SSLContext | None = None
        self._stamp: list[tuple[int, int, int] | None] = []
        self._looked_at = 0.0
        self._unfit_since: float | None = None
        self._is_warned = False

    def current(self, now: float) -> ssl.SSLContext:
        """What the files gave when they were last read.

        Args:
            now: a time that only rises, s; the files are looked at if enough of it has passed.

        Raises:
            ConfigError: they have never been right.
        """
        if self._made is None:
            self._stamp = self._stamps()
            self._made = self._make()
            self._looked_at = now
        elif now - self._looked_at >= LOOK_SECONDS:
            self._looked_at = now
            self._look(now)
        return self._made

    def _look(self, now: float) -> None:
        stamp = self._stamps()
        if stamp == self._stamp and self._unfit_since is None:
            return
        if stamp != self._stamp:
            self._stamp, self._unfit_since, self._is_warned = stamp, now, False
        try:
            self._made = self._make()
        except ConfigError as error:
            since = self._unfit_since if self._unfit_since is not None else now
            if now - since >= _UNFIT_SECONDS and not self._is_warned:
                self._is_warned = True
                logger.warning("the certificates in use stay, since the new ones fail: %s", error)
            return
        self._unfit_since = None
        logger.info("certificates were read again: %s", ", ".join(self._paths))

    def _stamps(self) -> list[tuple[int, int, int] | None]:
        """What changes with a file: also if it is a link that now leads elsewhere."""
        stamps: list[tuple[int, int, int] | None] = []
        for path in self._paths:
            try:
                found = os.stat(path)
            except OSError:
                stamps.append(None)
            else:
                stamps.append((found.st_mtime_ns, found.st_size, found.st_ino))
        return stamps


def watched_serving(config: TlsConfig, protocols: Sequence[str] = ()) -> WatchedFiles:
    """A server's certificate, key and authorities; see `serving`."""
    paths = [config.certificate, config.key, config.authorities]
    return WatchedFiles([each for each in paths if each], lambda: serving(config, protocols))


def watched_asking(tls: ClientTls) -> WatchedFiles:
    """A client's authorities, certificate and key."""
    paths = [tls.authorities, tls.certificate, tls.key]
    return WatchedFiles([each for each in paths if each], lambda: asking(tls))


def _take_authorities(made: ssl.SSLContext, path: str) -> None:
    if _CERTIFICATE not in read_file(path):
        raise ConfigError(f"{path} has no certificate in PEM, so no authority is known")
    try:
        made.load_verify_locations(path)
    except ssl.SSLError as error:
        raise ConfigError(f"{path}: its certificates cannot be read: {_said(error)}") from None


def _take_pair(made: ssl.SSLContext, pair: KeyPair) -> None:
    if _CERTIFICATE not in read_file(pair.certificate):
        raise ConfigError(f"{pair.certificate} has no certificate in PEM")
    where = pair.key or pair.certificate
    content = read_file(where)
    if b"PRIVATE KEY-----" not in content:
        raise ConfigError(f"{where} has no private key in PEM")
    is_encrypted = b"ENCRYPTED" in content
    if is_encrypted and not pair.password:
        raise ConfigError(f"the key in {where} is encrypted, and no password is set for it")
    password = pair.password or ""
    try:
        # Without a password OpenSSL would ask for one at the terminal.
        made.load_cert_chain(pair.certificate, pair.key, password=lambda: password)
    except (ssl.SSLError, ValueError) as error:
        reason = error.reason if isinstance(error, ssl.SSLError) else ""
        if reason == "KEY_VALUES_MISMATCH" or reason == "KEY_TYPE_MISMATCH":
            raise ConfigError(
                f"the key in {where} does not belong to the certificate in {pair.certificate}"
            ) from None
        if is_encrypted:
            raise ConfigError(f"the password does not open the key in {where}") from None
        raise ConfigError(
            f"{pair.certificate} and {where} cannot be used: {_said(error)}"
        ) from None
    except OSError as error:
        raise ConfigError(f"cannot read {where}: {error.strerror}") from None


def _fault_of_own(server: ssl.SSLContext, path: str) -> str | None:
    """What is wrong with a certificate by itself: that it has expired, or is not valid yet.

    Python reads no dates of a certificate that is in use. So a client that trusts only this very
    certificate shakes hands with the server, both in memory.
    """
    trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    trusting.check_hostname = False
    trusting.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    trusting.load_verify_locations(path)
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = trusting.wrap_bio(back, there)
    answering = server.wrap_bio(there, back, server_side=True)
    for side in (client, answering, client):
        try:
            side.do_handshake()
        except ssl.SSLWantReadError:
            continue
        except ssl.SSLCertVerificationError as error:
            return error.verify_message
        except ssl.SSLError as error:
            return _said(error)
    return None


def _said(error: Exception) -> str:
    reason = error.reason if isinstance(error, ssl.SSLError) else None
    return reason.lower().replace("_", " ") if reason else str(error)
