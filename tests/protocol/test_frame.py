from __future__ import annotations

import pytest

from sprocket.base.errors import LocalProtocolError, RemoteProtocolError
from sprocket.protocol import frame
from sprocket.protocol.command import BINARY, JSON, Command, Reply
from sprocket.protocol.connection import Connection
from sprocket.protocol.requests.client import Heartbeat
from sprocket.protocol.requests.send import SendMessageV2, SendReply


def read(parts: list[bytes | bytearray | memoryview]) -> Command:
    (command,) = Connection().receive(b"".join(parts))
    return command


def test_lengths_stand_before_the_header() -> None:
    parts = frame.encode(Command(1, serialization=BINARY), b"body")
    raw = b"".join(parts)
    assert raw[:8].hex() == f"{4 + 21 + 4:08x}" + "01" + f"{21:06x}"
    assert raw[-4:] == b"body"


@pytest.mark.parametrize("serialization", [JSON, BINARY])
def test_a_request_arrives_as_it_was_sent(serialization: int) -> None:
    header = SendMessageV2(topic="t", queue_id=1, producer_group="g")
    parts = frame.encode_request(header, 9, body=b"hello", serialization=serialization)
    command = read(parts)
    assert (command.code, command.opaque, command.body) == (310, 9, b"hello")
    assert (command.language, command.version) == ("PYTHON", 479)
    assert command.serialization == serialization
    assert not command.is_oneway
    assert command.read(SendMessageV2) == header


@pytest.mark.parametrize("serialization", [JSON, BINARY])
def test_a_oneway_request_says_so(serialization: int) -> None:
    parts = frame.encode_request(Heartbeat(), 9, is_oneway=True, serialization=serialization)
    assert read(parts).is_oneway


@pytest.mark.parametrize("serialization", [JSON, BINARY])
def test_a_reply_has_the_opaque_and_the_serialisation_of_its_request(serialization: int) -> None:
    request = Command(310, -77, serialization=serialization)
    header = SendReply(msg_id="m", queue_id=1, queue_offset=5, trace_on="true")
    command = read(frame.encode_reply(request, Reply(header, b"b", 0, "fine")))
    assert command.is_response
    assert (command.opaque, command.serialization) == (-77, serialization)
    assert (command.code, command.remark, command.body) == (0, "fine", b"b")
    assert command.read(SendReply) == header


def test_body_parts_are_not_copied() -> None:
    record = memoryview(bytearray(100))[10:90]
    parts = frame.encode_reply(Command(11), Reply(body=[record, record]))
    assert parts[1] is record
    assert parts[2] is record
    assert len(read(parts).body) == 160


def test_an_empty_reply_is_one_buffer() -> None:
    assert len(frame.encode_reply(Command(34), Reply())) == 1
    assert read(frame.encode_reply(Command(34), Reply())).fields == {}


def test_an_unknown_serialisation_is_refused() -> None:
    with pytest.raises(RemoteProtocolError, match="serialisation 7"):
        frame.decode_header(b"{}", 7)


def test_a_header_beyond_its_24_bits_is_our_own_fault() -> None:
    with pytest.raises(LocalProtocolError, match="too long"):
        frame.encode_reply(Command(1), Reply(remark="x" * 2**24))
