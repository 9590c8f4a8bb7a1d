"""The options that say as whom brokers are asked: a profile, or keys and TLS themselves."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from sprocket.base.errors import ConfigError
from sprocket.protocol.signing import Signer
from sprocket.spark.options import values
from sprocket.spark.options.declare import given_of, option
from sprocket.spark.options.profile import ProfileOptions
from sprocket.spark.options.tls import TlsOptions

if TYPE_CHECKING:
    from sprocket.remoting.tls.settings import ClientTls

Options = TypeVar("Options")

NO_SERVERS = "option namesrvAddr is missing: the name servers, host:port, or a profile with them"


@dataclass(frozen=True)
class Credentials(ProfileOptions, TlsOptions):
    """A profile; or TLS, and keys of the user for brokers with access control."""

    access_key: str | None = option(
        "accessKey", values.text, "The user's key, for brokers with access control (`aclEnable`)."
    )
    secret_key: str | None = option(
        "secretKey",
        values.text,
        "The key that signs requests. It is never sent.",
        is_secret=True,
    )
    security_token: str | None = option(
        "securityToken", values.text, "Token that belongs to temporary keys.", is_secret=True
    )

    @property
    def signer(self) -> Signer | None:
        """The signer of requests; None without keys.

        Raises:
            ConfigError: one key is given without the other.
        """
        profile = self.read_profile()
        if profile is not None:
            return profile.signer()
        return Signer.of(self.access_key, self.secret_key, self.security_token)

    @property
    def tls(self) -> ClientTls | None:
        """How connections speak TLS; None for plain ones.

        Raises:
            ConfigError: another option of TLS is given without `useTLS`.
        """
        profile = self.read_profile()
        return self.own_tls() if profile is None else profile.tls_of_client()

    def check_credentials(self) -> None:
        """Raises ConfigError for half of the keys, a token without them, or TLS that is not on."""
        _ = self.tls
        if self.profile is None and self.config_file is not None:
            raise ConfigError("option configFile goes with profile")
        if self.profile is not None:
            if other := next(given_of(self, Credentials, but=("profile", "config_file")), None):
                raise ConfigError(f"give profile or {other}, not both: keys and TLS are in it")
            return
        if bool(self.access_key) != bool(self.secret_key):
            missing = "secretKey" if self.access_key else "accessKey"
            raise ConfigError(f"option {missing} is missing: accessKey and secretKey go together")
        if self.security_token and not self.access_key:
            raise ConfigError("option accessKey is missing: securityToken goes with the two keys")


def with_servers(options: Options) -> Options:
    """The options with the name servers of their profile, if they name none themselves."""
    if not isinstance(options, Credentials) or options.profile is None:
        return options
    if getattr(options, "nameservers", ()):
        return options
    profile = options.read_profile()
    known: Any = options
    return replace(known, nameservers=profile.nameservers if profile else ())  # type: ignore[no-any-return]
