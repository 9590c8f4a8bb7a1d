from __future__ import annotations

import msgspec
import pytest

from sprocket.base.errors import RemoteProtocolError
from sprocket.protocol.command import ONEWAY, RESPONSE, Command
from sprocket.protocol.requests.pull import PullMessage
from sprocket.protocol.requests.send import SendMessage, SendMessageV2


def incoming(fields: bytes, code: int = 310) -> Command:
    return Command(code, source=msgspec.Raw(fields))


def test_a_declared_header_is_read() -> None:
    header = incoming(b'{"b":"t","e":"3","i":"TAGS\\u0001a","k":"true"}').read(SendMessageV2)
    assert header == SendMessageV2(topic="t", queue_id=3, properties="TAGS\x01a", unit_mode=True)


def test_short_and_long_names_give_the_same_attributes() -> None:
    short = incoming(b'{"b":"t","e":"3"}').read(SendMessageV2)
    long = incoming(b'{"topic":"t","queueId":"3"}', 10).read(SendMessage)
    assert msgspec.structs.asdict(short) == msgspec.structs.asdict(long)


@pytest.mark.parametrize(
    "fields",
    [
        b'{"b":"t","e":3,"k":false,"n":null}',
        b'{"b":"t","e":3.0}',
        b'{"b":"t","e":"+3"}',
        b'{"b":"t","e":"003"}',
        b'{"b":"t","e":"3","d":null}',
        b'{"b":"t","e":"3","g":""}',
        b'{"b":"t","e":"3","zz":{"deep":[1]}}',
    ],
)
def test_values_as_other_clients_write_them_are_read(fields: bytes) -> None:
    assert incoming(fields).read(SendMessageV2) == SendMessageV2(topic="t", queue_id=3)


def test_a_number_where_text_belongs_is_text() -> None:
    assert incoming(b'{"b":5,"e":3}').read(SendMessageV2).topic == "5"


def test_a_boolean_is_true_or_it_is_false() -> None:
    assert incoming(b'{"b":"t","e":3,"m":"TRUE"}').read(SendMessageV2).batch is True
    assert incoming(b'{"b":"t","e":3,"m":"yes"}').read(SendMessageV2).batch is False


def test_a_missing_field_is_named() -> None:
    with pytest.raises(RemoteProtocolError, match="<e> is null"):
        incoming(b'{"b":"t"}').read(SendMessageV2)
    with pytest.raises(RemoteProtocolError, match="<queueOffset> is null"):
        incoming(b'{"consumerGroup":"g","topic":"t","queueId":0}').read(PullMessage)


@pytest.mark.parametrize("value", [b'"x"', b"1.5", b'"2147483648"', b'{"a":1}', b"true"])
def test_an_ill_typed_field_is_named(value: bytes) -> None:
    with pytest.raises(RemoteProtocolError, match="<e> cannot be"):
        incoming(b'{"b":"t","e":' + value + b"}").read(SendMessageV2)


def test_a_long_bad_value_does_not_fill_the_error() -> None:
    with pytest.raises(RemoteProtocolError) as caught:
        incoming(b'{"b":"t","e":"' + b"x" * 10_000 + b'"}').read(SendMessageV2)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize("fields", [b"[]", b"3", b'"a"', b'{"b":', b'{"b":"\xff"}', b"{" * 5000])
def test_fields_that_are_no_object_are_refused(fields: bytes) -> None:
    with pytest.raises(RemoteProtocolError):
        incoming(fields).read(SendMessageV2)


def test_no_fields_at_all_are_no_fields() -> None:
    assert incoming(b"null").fields == {}
    with pytest.raises(RemoteProtocolError, match="<b> is null"):
        incoming(b"null").read(SendMessageV2)


def test_all_fields_can_be_had_as_text() -> None:
    command = incoming(b'{"a":"x","n":5,"t":true,"z":null,"o":{"p":1}}')
    assert command.fields == {"a": "x", "n": "5", "t": "true", "o": '{"p":1}'}


def test_a_header_can_be_read_after_its_texts_were_looked_at() -> None:
    command = incoming(b'{"b":"t","e":"3"}')
    assert command.fields["b"] == "t"
    assert command.read(SendMessageV2).queue_id == 3


def test_a_request_can_be_made_from_its_header() -> None:
    header = SendMessageV2(topic="t", queue_id=1)
    command = Command.request(header, body=b"x", opaque=7)
    assert (command.code, command.opaque, command.body) == (310, 7, b"x")
    assert command.read(SendMessageV2) == header


def test_flags_are_told() -> None:
    assert Command(0, flag=RESPONSE).is_response
    assert Command(0, flag=ONEWAY).is_oneway
    assert not Command(0).is_response
    assert not Command(0).is_oneway
