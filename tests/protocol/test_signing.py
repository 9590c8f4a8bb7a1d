from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sprocket.base.errors import ConfigError
from sprocket.client.config import ClientConfig, ProducerConfig
from sprocket.protocol.command import BINARY, JSON
from sprocket.protocol.connection import Connection
from sprocket.protocol.frame import encode_request
from sprocket.protocol.requests.client import Heartbeat
from sprocket.protocol.requests.route import RouteOfTopic
from sprocket.protocol.signing import Signer

GOLDEN: dict[str, Any] = json.loads(
    (Path(__file__).parents[1] / "golden" / "vectors" / "acl_signature.json").read_text()
)
SIGNER = Signer(GOLDEN["accessKey"], GOLDEN["secretKey"])


@pytest.mark.parametrize("case", GOLDEN["cases"], ids=lambda case: case["what"])
def test_signatures_are_those_of_java(case: dict[str, Any]) -> None:
    wanted = case["extFieldsAfterSigning"]
    texts = {k: v for k, v in wanted.items() if k not in ("AccessKey", "Signature")}
    assert SIGNER.signed(texts, bytes.fromhex(case.get("bodyHex", ""))) == wanted
    assert SIGNER.signed(wanted, bytes.fromhex(case.get("bodyHex", ""))) == wanted


@pytest.mark.parametrize("serialization", [JSON, BINARY])
def test_a_signed_request_carries_key_and_signature_and_no_secret(serialization: int) -> None:
    frame = encode_request(RouteOfTopic(topic="T"), 1, serialization=serialization, signer=SIGNER)
    data = b"".join(frame)
    (command,) = Connection().receive(data)
    assert command.fields == SIGNER.signed({"topic": "T"})
    assert GOLDEN["secretKey"].encode() not in data


def test_the_body_and_a_token_are_signed_too() -> None:
    plain = SIGNER.signed({}, b"a")["Signature"]
    assert plain != SIGNER.signed({}, b"b")["Signature"]
    lent = Signer("accessKeyOne", "secretKeyOne12345", "token").signed({}, b"a")
    assert lent["SecurityToken"] == "token"
    assert lent["Signature"] != plain
    (command,) = Connection().receive(
        b"".join(encode_request(Heartbeat(), 1, body=b"{}", signer=SIGNER))
    )
    assert command.fields["Signature"] == SIGNER.signed({}, b"{}")["Signature"]


def test_credentials_are_whole_or_none_and_never_shown() -> None:
    assert ClientConfig().signer() is None
    config = ProducerConfig(access_key="me", secret_key="hidden", security_token="lent")
    assert config.signer() == Signer("me", "hidden", "lent")
    assert "hidden" not in repr(config) + repr(config.signer())
    assert config.shared().signer() == config.signer()
    for half in ({"access_key": "me"}, {"secret_key": "hidden"}, {"security_token": "t"}):
        with pytest.raises(ConfigError, match="needs its secret key"):
            ClientConfig(**half).signer()
