"""Signs requests for brokers with access control, and checks signatures.

The signed content is the values of all fields, joined in the order of their names, and then the
body. Pure. Source: AclClientRPCHook and AclSigner of RocketMQ 4.9; brokers of 5.x accept it too.
"""

from __future__ import annotations

import base64
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field

from sprocket.base.errors import ConfigError
from sprocket.protocol.command import Buffer, Command

_ACCESS_KEY = "AccessKey"
_SECURITY_TOKEN = "SecurityToken"
_SIGNATURE = "Signature"
#: A field that clients up to RocketMQ 4.9.3 add after signing. Source:
#: DefaultAuthenticationContextBuilder of 5.3.
_UNIQUE_KEY_FLAG = "_UNIQUE_KEY_QUERY"
_UNSIGNED_FLAG_VERSION = 399


@dataclass(frozen=True, slots=True)
class Signer:
    """Signs in the name of one user.

    Attributes:
        access_key: the user's name.
        secret_key: known to the user and the brokers only; it is never sent.
        security_token: accompanies temporary keys; empty for none.
    """

    access_key: str
    secret_key: str = field(repr=False)
    security_token: str = field(default="", repr=False)

    @classmethod
    def of(
        cls, access_key: str | None, secret_key: str | None, security_token: str | None = None
    ) -> Signer | None:
        """A signer for these credentials; None if there are none.

        Raises:
            ConfigError: one of the two keys is missing.
        """
        if not access_key and not secret_key and not security_token:
            return None
        if not access_key or not secret_key:
            raise ConfigError("an access key needs its secret key, and the other way round")
        return cls(access_key, secret_key, security_token or "")

    def signed(self, texts: dict[str, str], body: Buffer = b"") -> dict[str, str]:
        """The fields of a request, with access key and signature added."""
        signed = {**texts, _ACCESS_KEY: self.access_key}
        if self.security_token:
            signed[_SECURITY_TOKEN] = self.security_token
        signed.pop(_SIGNATURE, None)
        signed[_SIGNATURE] = _signature(signed, body, self.secret_key)
        return signed


def signer_of(command: Command) -> str:
    """The name of who signed a request; empty if it is not signed."""
    return command.fields.get(_ACCESS_KEY) or ""


def is_signed_with(command: Command, secret_key: str) -> bool:
    """Whether a request has the signature that this key makes. It takes as long for a wrong one.

    A signature has neither a time nor a number, so whoever sees a signed request can send it
    again: TLS is what keeps others from seeing it.
    """
    fields = dict(command.fields)
    found = fields.pop(_SIGNATURE, "")
    if command.version <= _UNSIGNED_FLAG_VERSION:
        fields.pop(_UNIQUE_KEY_FLAG, None)
    made = _signature(fields, command.body, secret_key)
    return hmac.compare_digest(made.encode(), found.encode("utf-8", "replace"))


def _signature(texts: Mapping[str, str], body: Buffer, secret_key: str) -> str:
    content = "".join(texts[name] for name in sorted(texts)).encode("utf-8", "replace")
    if body:
        content = b"".join((content, body))
    made = hmac.digest(secret_key.encode("utf-8", "replace"), content, "sha1")
    return base64.b64encode(made).decode()
