"""The settings that say as whom servers are asked: access keys and TLS. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sprocket.base.config import Conflict, check_values, setting, settings_of
from sprocket.protocol.signing import Signer
from sprocket.remoting.tls.settings import TlsClientConfig


@dataclass(frozen=True, slots=True)
class AccessConfig(TlsClientConfig):
    """Settings of all clients and of profiles."""

    access_key: str | None = setting(
        None, "The user's name at brokers with access control.", rocketmq="accessKey"
    )
    secret_key: str | None = setting(
        None, "The key that signs requests.", rocketmq="secretKey", is_secret=True
    )
    security_token: str | None = setting(
        None, "The token that belongs to temporary keys.", is_secret=True
    )

    def __post_init__(self) -> None:
        check_values(self)

    def conflicts(self) -> Iterator[Conflict]:
        """What is wrong with the settings together."""
        keys = (self.access_key, self.secret_key)
        if any((*keys, self.security_token)) and not all(keys):
            yield Conflict(
                ("access_key", "secret_key", "security_token"),
                "and secret_key belong together, and one of them is missing",
            )

    def access_settings(self) -> dict[str, Any]:
        """These settings as arguments for any client's configuration class."""
        return {name: getattr(self, name) for name in settings_of(AccessConfig)}

    def signer(self) -> Signer | None:
        """Returns the signer of requests; None if there are no keys.

        Raises:
            ConfigError: one key is given without the other.
        """
        return Signer.of(self.access_key, self.secret_key, self.security_token)
