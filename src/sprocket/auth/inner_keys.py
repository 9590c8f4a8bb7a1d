"""The keys with which a server signs its own requests, in the form of RocketMQ's setting. Pure.

Source: `innerClientAuthenticationCredentials` of AuthConfig of RocketMQ 5.3.
"""

from __future__ import annotations

import msgspec

from sprocket.protocol.signing import Signer

#: The form of the setting.
KEYS_FORM = '{"accessKey":"…","secretKey":"…"}'


class _Keys(msgspec.Struct, rename="camel"):
    access_key: str
    secret_key: str


def keys_fault(value: str) -> str | None:
    """What is wrong with a value of the setting; None if nothing is."""
    try:
        keys = msgspec.json.decode(value, type=_Keys)
    except msgspec.MsgspecError:
        return f"is JSON such as {KEYS_FORM}"
    return None if keys.access_key and keys.secret_key else "has an empty key"


def signer_with(value: str | None) -> Signer | None:
    """Signs with the keys of the setting; None if it is not set."""
    if not value:
        return None
    keys = msgspec.json.decode(value, type=_Keys)
    return Signer(keys.access_key, keys.secret_key)
