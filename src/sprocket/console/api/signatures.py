"""Signatures of HTTP requests: who knows a user's secret key need not send it. Pure.

    Authorization: SPROCKET-HMAC-SHA256 Credential=ACCESS_KEY, Date=MS, Signature=HEX

What is signed is lines of text: the date (ms since 1970 UTC), the method, the path with its query
as they are sent, and the SHA-256 of the body in hex. The key is the user's secret key.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from typing import NamedTuple

SCHEME = "SPROCKET-HMAC-SHA256"
#: A signature counts so long before and after its date.
VALID_MS = 300_000

_FORM = re.compile(
    r"Credential=([^,\s]{1,255}), ?Date=([0-9]{1,15}), ?Signature=([0-9a-f]{64})", re.ASCII
)


class SignedRequest(NamedTuple):
    """A request as it is signed.

    Attributes:
        target: path and query, as they are sent.
    """

    method: str
    target: str
    body: bytes


class ClaimedSignature(NamedTuple):
    """What an `Authorization` header claims."""

    access_key: str
    date_ms: int
    signature: str


def authorization(request: SignedRequest, access_key: str, secret_key: str, now_ms: int) -> str:
    """The value of the header `Authorization` for a request."""
    made = _signature(request, secret_key, now_ms)
    return f"{SCHEME} Credential={access_key}, Date={now_ms}, Signature={made}"


def claimed(text: str) -> ClaimedSignature | None:
    """What the header says behind the name of the scheme; None if it says nothing right."""
    match = _FORM.fullmatch(text.strip())
    return None if match is None else ClaimedSignature(match[1], int(match[2]), match[3])


def is_right(request: SignedRequest, claim: ClaimedSignature, secret_key: str) -> bool:
    """Whether a signature was made with this key, whatever its date."""
    return hmac.compare_digest(_signature(request, secret_key, claim.date_ms), claim.signature)


def _signature(request: SignedRequest, secret_key: str, date_ms: int) -> str:
    digest = hashlib.sha256(request.body).hexdigest()
    text = f"{date_ms}\n{request.method}\n{request.target}\n{digest}"
    return hmac.digest(secret_key.encode(), text.encode(), "sha256").hex()
