"""Signatures as the clients of all languages write them."""

from __future__ import annotations

import hashlib
import hmac

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sprocket.proxy.messages import rocketmq_pb2 as pb
from sprocket.proxy.messages.signatures import signature_in
from sprocket.proxy.messages.statuses import CallRefused

TIME = "20231227T194619Z"
MADE = hmac.new(b"secret", TIME.encode(), hashlib.sha1).hexdigest()


def metadata(
    credential: str = "abc", made: str = MADE, *, time: str = TIME, **more: str
) -> dict[str, str]:
    return {
        "x-mq-date-time": time,
        "authorization": f"MQv2-HMAC-SHA1 Credential={credential}, SignedHeaders=x-mq-date-time, "
        f"Signature={made}",
        **more,
    }


@pytest.mark.parametrize("credential", ["abc", "abc//Rocketmq", "abc/cn-1/Rocketmq"])
@pytest.mark.parametrize("made", [MADE, MADE.upper()])
def test_a_signature_is_read_as_each_client_writes_it(credential: str, made: str) -> None:
    found = signature_in(metadata(credential, made))
    assert found.user == "abc"
    assert found.is_of("secret")
    assert not found.is_of("another")
    assert not found.is_of("")


def test_rocketmq_s_own_example_is_read() -> None:
    made = "D18A9CBCDDBA9041D6693268FEF15A989E64430B"
    assert signature_in(metadata(made=made)).made.hex() == made.lower()


def test_the_time_is_what_is_signed() -> None:
    rust = "2023-12-27T19:46:19.123456Z"
    assert not signature_in(metadata(time=rust)).is_of("secret")
    made = hmac.new(b"secret", rust.encode(), hashlib.sha1).hexdigest()
    assert signature_in(metadata(made=made, time=rust)).is_of("secret")


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"authorization": metadata()["authorization"]},
        {**metadata(), "authorization": "Bearer x"},
        {**metadata(), "authorization": "MQv2-HMAC-SHA1 Credential=abc"},
        metadata(credential=""),
        metadata(made=""),
        metadata(made="xyz"),
        metadata(made="ab" * 1000),
        metadata(time="x" * 2000),
    ],
)
def test_what_is_no_signature_is_unauthorized(headers: dict[str, str]) -> None:
    with pytest.raises(CallRefused) as refused:
        signature_in(headers)
    assert refused.value.code == pb.UNAUTHORIZED


@given(st.text(), st.text())
def test_any_text_is_a_signature_or_refused(authorization: str, time: str) -> None:
    try:
        found = signature_in({"authorization": authorization, "x-mq-date-time": time})
    except CallRefused:
        return
    assert not found.is_of("secret")
