"""Signatures of gRPC clients: who signed a call, and whether with the right key. Pure.

A client signs the time at which it calls and nothing else, so whoever sees a signed call can make
others: TLS is what keeps them from seeing it. RocketMQ's proxy compares the time with no clock, and
neither does this. `authorization: MQv2-HMAC-SHA1 Credential=NAME, SignedHeaders=x-mq-date-time,
Signature=HEX`; Go's and C++'s clients write `NAME//Rocketmq`, and the digits are of any case.
Source: DefaultAuthenticationContextBuilder of RocketMQ 5.3 (module auth), and the class Signature
of the clients.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from typing import NamedTuple

from sprocket.proxy.messages import rocketmq_pb2 as pb
from sprocket.proxy.messages.statuses import CallRefused

_AUTHORIZATION = "authorization"
_DATE_TIME = "x-mq-date-time"
#: Longer ones are no signatures.
_LENGTH_MAX = 1024


class CallSignature(NamedTuple):
    """A signature as a call has it.

    Attributes:
        user: who is said to have signed.
        signed: the bytes that are signed.
        made: the signature.
    """

    user: str
    signed: bytes
    made: bytes

    def is_of(self, secret_key: str) -> bool:
        """Whether this key made it. It takes as long for a wrong one."""
        made = hmac.digest(secret_key.encode("utf-8", "replace"), self.signed, "sha1")
        return hmac.compare_digest(made, self.made)


def signature_in(metadata: Mapping[str, str]) -> CallSignature:
    """The signature of a call.

    Raises:
        CallRefused: there is none, or it has another form.
    """
    text = metadata.get(_AUTHORIZATION, "")
    if not text:
        raise _refused("the call is not signed: the client needs an access key and a secret key")
    date_time = metadata.get(_DATE_TIME, "")
    if not date_time:
        raise _refused(f"a signed call has {_DATE_TIME}")
    if len(text) > _LENGTH_MAX or len(date_time) > _LENGTH_MAX:
        raise _refused("the authorization is too long")
    _, _, parts = text.partition(" ")
    named = dict(part.strip().partition("=")[::2] for part in parts.split(","))
    user = named.get("Credential", "").partition("/")[0]
    try:
        made = bytes.fromhex(named.get("Signature", ""))
    except ValueError:
        raise _refused("the signature is no hexadecimal number") from None
    if not user or not made:
        raise _refused("the authorization has Credential=… and Signature=…")
    return CallSignature(user, date_time.encode("utf-8", "replace"), made)


def _refused(text: str) -> CallRefused:
    return CallRefused(pb.UNAUTHORIZED, text)
