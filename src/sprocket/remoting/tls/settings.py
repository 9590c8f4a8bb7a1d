"""The settings of TLS, for servers and for clients, with RocketMQ's names where it has them.

Source of the names: TlsSystemConfig and NettyClientConfig of RocketMQ 5.x. Certificates, keys and
authorities are files in PEM.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from sprocket.base import setting_forms as forms
from sprocket.base.config import Conflict, check, setting, settings_of
from sprocket.base.config_files import ConfigFile, load
from sprocket.base.decoding import decode
from sprocket.base.errors import ConfigError
from sprocket.base.loaded_config import DEFAULT

DISABLED, PERMISSIVE, ENFORCING = "disabled", "permissive", "enforcing"
NONE, OPTIONAL, REQUIRE = "none", "optional", "require"


@dataclass(frozen=True, slots=True)
class ClientTls:
    """How a client speaks TLS. It can be pickled; whoever connects reads the files.

    Attributes:
        authorities: file of the authorities that servers' certificates are checked against; None
            for those of the system.
        certificate, key: files of the client's own certificate, with the chain below it, and of
            its key; None for none. The key may be in the file of the certificate.
        key_password: opens the key, if it is encrypted.
        checks: whether servers' certificates are checked at all.
        checks_name: whether they must be for the name or address that is connected to.
        server_name: the name that they must be for instead.
    """

    authorities: str | None = None
    certificate: str | None = None
    key: str | None = None
    key_password: str | None = field(default=None, repr=False)
    checks: bool = True
    checks_name: bool = True
    server_name: str | None = None


@dataclass(frozen=True, slots=True)
class TlsClientConfig:
    """The settings of a client's TLS: the first ones of every client."""

    tls: bool = setting(
        False, "Whether connections to servers use TLS.", rocketmq="useTLS tls.enable"
    )
    tls_authorities: str | None = setting(
        None,
        "File (PEM) of the authorities that servers' certificates are checked against. None: those "
        "of the system.",
        rocketmq="tls.client.trustCertPath",
        form=forms.file,
    )
    tls_certificate: str | None = setting(
        None,
        "File (PEM) of the client's own certificate and its chain, for servers that want one.",
        rocketmq="tls.client.certPath",
        form=forms.file,
    )
    tls_key: str | None = setting(
        None,
        "File (PEM) of the key of `tls_certificate`. None: it is in the same file.",
        rocketmq="tls.client.keyPath",
        form=forms.file,
    )
    tls_key_password: str | None = setting(
        None,
        "Password of the key, if it is encrypted.",
        rocketmq="tls.client.keyPassword",
        is_secret=True,
    )
    tls_check: bool = setting(
        True,
        "Whether servers' certificates are checked. Without that anybody between can read and "
        "change everything.",
        rocketmq="tls.client.authServer",
    )
    tls_check_name: bool = setting(
        True,
        "Whether a server's certificate must be for the name or address that is connected to.",
    )
    tls_server_name: str | None = setting(
        None, "The name that all servers' certificates must be for instead.", form=forms.name
    )

    def tls_settings(self) -> dict[str, Any]:
        """These settings as arguments for any client's configuration class."""
        return {name: getattr(self, name) for name in settings_of(TlsClientConfig)}

    def tls_of_client(self) -> ClientTls | None:
        """How the client speaks TLS; None if it does not."""
        if not self.tls:
            return None
        return ClientTls(
            authorities=self.tls_authorities,
            certificate=self.tls_certificate,
            key=self.tls_key,
            key_password=self.tls_key_password,
            checks=self.tls_check,
            checks_name=self.tls_check_name,
            server_name=self.tls_server_name,
        )


@dataclass(frozen=True, slots=True)
class TlsConfig:
    """Settings of a server's TLS: of its port, and of its own connections to others.

    Without a certificate a permissive server speaks no TLS; RocketMQ's makes one up for tests,
    which nobody can check. The gRPC port of a proxy does so too, since its clients begin with TLS.
    """

    mode: str = setting(
        PERMISSIVE,
        "`permissive` takes plain connections and those with TLS at one port; `enforcing` refuses "
        "plain ones, `disabled` TLS.",
        rocketmq="tls.server.mode",
        choices=(DISABLED, PERMISSIVE, ENFORCING),
    )
    certificate: str | None = setting(
        None,
        "File (PEM) of the server's certificate, followed by its chain.",
        rocketmq="tls.server.certPath tlsCertPath",
        form=forms.file,
    )
    key: str | None = setting(
        None,
        "File (PEM) of the certificate's key; without it the key is in the file of `certificate`.",
        rocketmq="tls.server.keyPath tlsKeyPath",
        form=forms.file,
    )
    key_password: str | None = setting(
        None,
        "Password of the key, if it is encrypted.",
        rocketmq="tls.server.keyPassword",
        is_secret=True,
    )
    client_certificates: str = setting(
        NONE,
        "Whether clients need a certificate: `none` does not ask for one, `optional` checks one if "
        "there is one, `require` refuses clients without.",
        rocketmq="tls.server.need.client.auth",
        choices=(NONE, OPTIONAL, REQUIRE),
    )
    authorities: str | None = setting(
        None,
        "File (PEM) of the authorities that clients' certificates are checked against.",
        rocketmq="tls.server.trustCertPath",
        form=forms.file,
    )
    handshake_ms: int = setting(
        10_000, "How long a client may take for the handshake.", minimum=100, maximum=600_000
    )
    outgoing: bool | None = setting(
        None,
        "Whether the server's own connections, to name servers and to a master, use TLS; by "
        "default if `mode` is `enforcing`.",
        rocketmq="tls.enable useTLS",
    )
    outgoing_authorities: str | None = setting(
        None,
        "File (PEM) of the authorities that the others' certificates are checked against; by "
        "default those of the system.",
        rocketmq="tls.client.trustCertPath",
        form=forms.file,
    )
    outgoing_certificate: str | None = setting(
        None,
        "File (PEM) of the certificate that is shown to them.",
        rocketmq="tls.client.certPath",
        form=forms.file,
    )
    outgoing_key: str | None = setting(
        None,
        "File (PEM) of its key; without it the key is in the same file.",
        rocketmq="tls.client.keyPath",
        form=forms.file,
    )
    outgoing_key_password: str | None = setting(
        None,
        "Password of that key, if it is encrypted.",
        rocketmq="tls.client.keyPassword",
        is_secret=True,
    )
    outgoing_check: bool = setting(
        True,
        "Whether the others' certificates are checked.",
        rocketmq="tls.client.authServer",
    )
    outgoing_check_name: bool = setting(
        True, "Whether they must be for the name or address that is connected to."
    )
    outgoing_server_name: str | None = setting(
        None, "The name that they must be for instead.", form=forms.name
    )
    replication: bool = setting(
        True,
        "Whether replication connections use TLS as the others do. RocketMQ's own brokers "
        "replicate without TLS.",
    )
    file: str | None = setting(
        None,
        "File with more of these settings under RocketMQ's names, which win over others.",
        rocketmq="tls.config.file",
        form=forms.file,
    )

    @property
    def is_serving(self) -> bool:
        """Whether the server's port speaks TLS."""
        return self.mode == ENFORCING or (self.mode != DISABLED and self.certificate is not None)

    def conflicts(self) -> Iterator[Conflict]:
        """What is wrong with the settings together."""
        if self.file is not None:
            return  # it may have what is missing; see `whole`
        if self.mode == ENFORCING and self.certificate is None:
            yield Conflict(
                ("mode", "certificate"),
                "(tls.server.mode) is enforcing, which needs tls.certificate (tls.server.certPath)",
            )
        if self.key is not None and self.certificate is None:
            yield Conflict(
                ("key", "certificate"),
                "(tls.server.keyPath) needs tls.certificate (tls.server.certPath)",
            )
        if self.client_certificates != NONE and self.authorities is None:
            yield Conflict(
                ("client_certificates", "authorities"),
                f"(tls.server.need.client.auth) is {self.client_certificates}, which needs "
                "tls.authorities (tls.server.trustCertPath): whose certificates are accepted",
            )
        if self.outgoing_key is not None and self.outgoing_certificate is None:
            yield Conflict(
                ("outgoing_key", "outgoing_certificate"),
                "(tls.client.keyPath) needs tls.outgoing_certificate (tls.client.certPath)",
            )

    def whole(self) -> TlsConfig:
        """These settings with those of `file`, which is read now.

        Raises:
            ConfigError: the file cannot be read, or a setting in it is wrong.
        """
        if self.file is None:
            return self
        loaded = load([TlsConfig], file=ConfigFile(self.file, decode(read_file(self.file))))
        found = loaded.of(TlsConfig)
        given = {
            key.partition(".")[2] for key, origin in loaded.origins.items() if origin != DEFAULT
        } - {"file"}
        return replace(self, file=None, **{name: getattr(found, name) for name in given})

    def outgoing_tls(self) -> ClientTls | None:
        """How the server's own connections speak TLS; None if they do not."""
        if not (self.mode == ENFORCING if self.outgoing is None else self.outgoing):
            return None
        return ClientTls(
            authorities=self.outgoing_authorities,
            certificate=self.outgoing_certificate,
            key=self.outgoing_key,
            key_password=self.outgoing_key_password,
            checks=self.outgoing_check,
            checks_name=self.outgoing_check_name,
            server_name=self.outgoing_server_name,
        )


def checked_settings(config: TlsConfig | None) -> TlsConfig:
    """The settings that a server was given; the default ones if it was given none.

    Raises:
        ConfigError: one is wrong, or their file is not read yet.
    """
    found = config or TlsConfig()
    check(found)
    if found.file is not None:
        raise ConfigError("tls.file is not read yet: give the server `settings.whole()`")
    return found


def read_file(path: str) -> bytes:
    """The content of a file.

    Raises:
        ConfigError: it cannot be read.
    """
    try:
        with open(path, "rb") as file:
            return file.read(1 << 20)
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from None
