"""The options of TLS, for reading and for writing.

The files must be there under the same paths for the driver and for every executor: a relative path
begins in the folder that Spark starts the process in, where `--files` puts what it distributes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sprocket.base.errors import ConfigError
from sprocket.spark.options import values
from sprocket.spark.options.declare import given_of, option

if TYPE_CHECKING:
    from sprocket.remoting.tls.settings import ClientTls


@dataclass(frozen=True)
class TlsOptions:
    """Whether and how connections to name servers and brokers use TLS."""

    uses_tls: bool = option(
        "useTLS",
        values.switch,
        "Whether connections to name servers and brokers use TLS.",
        default=False,
    )
    tls_authorities: str | None = option(
        "tlsAuthorities",
        values.text,
        "File (PEM) of the authorities that servers' certificates are checked against; without it "
        "those of the system. All tasks must reach it under this path.",
    )
    tls_certificate: str | None = option(
        "tlsCertificate",
        values.text,
        "File (PEM) of a certificate of our own, for servers that want one.",
    )
    tls_key: str | None = option(
        "tlsKey", values.text, "File (PEM) of its key; without it the key is in the same file."
    )
    tls_key_password: str | None = option(
        "tlsKeyPassword", values.text, "Password of the key.", is_secret=True
    )
    tls_checks: bool = option(
        "tlsCheck", values.switch, "Whether servers' certificates are checked.", default=True
    )
    tls_checks_name: bool = option(
        "tlsCheckName",
        values.switch,
        "Whether they must be for the name or address that is connected to.",
        default=True,
    )
    tls_server_name: str | None = option(
        "tlsServerName", values.text, "The name that they must be for instead."
    )

    def own_tls(self) -> ClientTls | None:
        """How connections speak TLS by these options; None for plain ones.

        Raises:
            ConfigError: another option of TLS is given without `useTLS`.
        """
        if not self.uses_tls:
            if other := next(given_of(self, TlsOptions, but=("uses_tls",)), None):
                raise ConfigError(f"option {other} is given, and useTLS is not true")
            return None
        from sprocket.remoting.tls.settings import ClientTls

        return ClientTls(
            authorities=self.tls_authorities,
            certificate=self.tls_certificate,
            key=self.tls_key,
            key_password=self.tls_key_password,
            checks=self.tls_checks,
            checks_name=self.tls_checks_name,
            server_name=self.tls_server_name,
        )


def tls_as_options(tls: ClientTls) -> dict[str, str]:
    """The options that give these settings."""
    found = {
        "useTLS": "true",
        "tlsAuthorities": tls.authorities,
        "tlsCertificate": tls.certificate,
        "tlsKey": tls.key,
        "tlsKeyPassword": tls.key_password,
        "tlsCheck": str(tls.checks).lower(),
        "tlsCheckName": str(tls.checks_name).lower(),
        "tlsServerName": tls.server_name,
    }
    return {name: text for name, text in found.items() if text is not None}
