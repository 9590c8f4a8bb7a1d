"""Signatures are right for one request, one key and one date only."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sprocket.console.api import signatures
from sprocket.console.api.signatures import ClaimedSignature, SignedRequest

REQUEST = SignedRequest("POST", "/api/v1/topics?a=1", b'{"topic":"orders"}')


def claim_of(request: SignedRequest, secret: str, now_ms: int = 7) -> ClaimedSignature:
    header = signatures.authorization(request, "ann", secret, now_ms)
    scheme, _, rest = header.partition(" ")
    assert scheme == signatures.SCHEME
    claim = signatures.claimed(rest)
    assert claim is not None
    return claim


def test_a_signature_is_as_the_guide_says_it_is_made() -> None:
    assert signatures.authorization(REQUEST, "ann", "ann's", 1_700_000_000_000) == (
        "SPROCKET-HMAC-SHA256 Credential=ann, Date=1700000000000, Signature="
        "b8385c5e3e3f4ffa7012be6018ee9b425d3805bbdf3ca65d3337671a31496b60"  # by openssl
    )


@given(st.text(), st.binary(), st.integers(0, 10**14))
def test_whoever_has_the_key_signs_right(secret: str, body: bytes, now_ms: int) -> None:
    try:
        secret.encode()
    except UnicodeEncodeError:
        return
    request = SignedRequest("GET", "/x", body)
    claim = claim_of(request, secret, now_ms)
    assert (claim.access_key, claim.date_ms) == ("ann", now_ms)
    assert signatures.is_right(request, claim, secret)


@pytest.mark.parametrize(
    "other",
    [
        REQUEST._replace(method="DELETE"),
        REQUEST._replace(target="/api/v1/topics?a=2"),
        REQUEST._replace(body=b"{}"),
    ],
)
def test_a_signature_is_wrong_for_another_request(other: SignedRequest) -> None:
    claim = claim_of(REQUEST, "ann's")
    assert signatures.is_right(REQUEST, claim, "ann's")
    assert not signatures.is_right(other, claim, "ann's")
    assert not signatures.is_right(REQUEST, claim, "bob's")
    assert not signatures.is_right(REQUEST, claim._replace(date_ms=8), "ann's")


@given(st.text(max_size=200))
def test_whatever_else_stands_there_claims_nothing(text: str) -> None:
    assert signatures.claimed(text) is None
