from __future__ import annotations

import contextlib
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sprocket.base.errors import RemoteProtocolError
from sprocket.protocol.bodies import Body, Queue
from sprocket.protocol.bodies.body import always
from sprocket.protocol.command import Long


class Plain(Body):
    count: Long = always(0)
    names: list[str] = always([])
    some_text: str | None = None
    when_ms: Long = always(7, name="at")


class Keyed(Body):
    is_dialect: ClassVar[bool] = True

    by_number: dict[Long, str] = always({})
    by_queue: dict[Queue, Long] = always({})


def test_defaults_are_written_and_null_is_not() -> None:
    assert Plain().encode() == b'{"count":0,"names":[],"at":7}'
    assert Plain(some_text="x").encode() == b'{"count":0,"names":[],"someText":"x","at":7}'


def test_defaults_are_not_shared() -> None:
    Plain().names.append("x")
    assert Plain().names == []


@pytest.mark.parametrize(
    "data",
    [b'{"count":5}', b"{count:5}", b'{"count":"5","names":null}', b'{"count":5,"unknown":{"a":1}}'],
)
def test_both_dialects_are_read(data: bytes) -> None:
    assert Plain.decode(data) == Plain(count=5)


@pytest.mark.parametrize(
    "data",
    [b"", b"[]", b"null", b'{"count":', b'{"count":"x"}', b'{"names":"x"}', b"\xff",
     b'{"count":99999999999999999999}', b"[" * 5000],
)  # fmt: skip
def test_other_bodies_are_refused(data: bytes) -> None:
    with pytest.raises(RemoteProtocolError):
        Plain.decode(data)


def test_keys_that_are_no_texts_go_both_ways() -> None:
    body = Keyed({0: "a"}, {Queue("b", 1, "t"): 5})
    data = body.encode()
    assert data == (
        b'{"byNumber":{0:"a"},"byQueue":{{"brokerName":"b","queueId":1,"topic":"t"}:5}}'
    )
    assert Keyed.decode(data) == body


def test_a_queue_as_quoted_key_is_read() -> None:
    quoted = rb'{"byQueue":{"{\"brokerName\":\"b\",\"queueId\":1,\"topic\":\"t\"}":5}}'
    assert Keyed.decode(quoted).by_queue == {Queue("b", 1, "t"): 5}


def test_a_long_body_that_is_not_standard_is_refused_unless_asked_for() -> None:
    data = b"{count:5" + b" " * 2**20 + b"}"
    with pytest.raises(RemoteProtocolError, match="too long"):
        Plain.decode(data)
    assert Plain.decode(data, bytes_max=2**21).count == 5


@given(st.binary(max_size=60))
def test_any_bytes_are_a_body_or_refused(data: bytes) -> None:
    for kind in (Plain, Keyed):
        with contextlib.suppress(RemoteProtocolError):
            kind.decode(data)
