"""Signs requests for brokers with access control (`aclEnable`).

The signed content is the values of all fields, joined in the order of their names, and then the
body. Pure. Source: AclClientRPCHook and AclSigner of RocketMQ 4.9; brokers of 5.x accept it too.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from dataclasses import dataclass, field

from sprocket.base.errors import ConfigError
from sprocket.protocol.command import Buffer

_ACCESS_KEY = "AccessKey"
_SECURITY_TOKEN = "SecurityToken"
_SIGNATURE = "Signature"


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
        content = "".join(signed[name] for name in sorted(signed)).encode("utf-8", "replace")
        made = hmac.new(self.secret_key.encode(), content, hashlib.sha1)
        made.update(body)
        signed[_SIGNATURE] = base64.b64encode(made.digest()).decode()
        return signed
