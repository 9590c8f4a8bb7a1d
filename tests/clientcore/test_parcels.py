"""Many messages as few requests."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sprocket.clientcore.envelope import JAVA_PACKING
from sprocket.clientcore.parcels import Parcel, Refused, parcels
from sprocket.message import batch
from sprocket.message.ids import UniqueIds
from sprocket.message.message import Message
from sprocket.message.properties import decode

NOW_MS = 1_700_000_000_123


@dataclass
class Limits:
    """What one request may hold."""

    batch_count_max: int = 4
    batch_bytes_max: int = 1 << 20


def split(messages: list[Message], limits: Limits | None = None) -> list[Parcel | Refused]:
    ids = UniqueIds(address=b"1234", process=1, token=b"5678")
    return list(parcels(enumerate(messages), ids, NOW_MS, JAVA_PACKING, limits or Limits()))


some = st.builds(
    Message,
    topic=st.just("orders"),
    body=st.sampled_from([b"x", b"y" * 300, b"z" * 5000, b""]),
    tag=st.sampled_from([None, "t", "a || b"]),
    keys=st.sampled_from([(), ("k",)]),
    wait_stored=st.booleans(),
    delay_level=st.sampled_from([0, 0, 0, 2]),
    priority=st.sampled_from([None, None, None, 1]),
)


@given(st.lists(some, max_size=12), st.integers(1, 4), st.sampled_from([1, 400, 1 << 20]))
def test_each_message_is_in_one_request_in_order_or_refused(
    messages: list[Message], count_max: int, bytes_max: int
) -> None:
    found = split(messages, Limits(count_max, bytes_max))
    refused = {each.place for each in found if isinstance(each, Refused)}
    wrong = {
        place for place, one in enumerate(messages)
        if not one.body or one.tag == "a || b" or (one.priority is not None and one.delay_level)
    }  # fmt: skip
    assert refused == wrong
    requests = [each for each in found if isinstance(each, Parcel)]
    places = [place for each in requests for place, _ in each.messages]
    assert places == sorted(set(range(len(messages))) - wrong)
    for envelope, inside in requests:
        first = inside[0][1]
        assert all(messages[place] is message for place, message in inside)
        waits = "true" if first.wait_stored else "false"
        if len(inside) == 1:
            assert not envelope.parts, "it is a send, no batch of one"
            assert decode(envelope.properties)["WAIT"] == waits
            continue
        assert len(inside) <= count_max
        assert len(envelope.body) <= bytes_max
        assert decode(envelope.properties)["WAIT"] == waits
        parts = batch.decode(envelope.body)
        assert [bytes(part.body) for part in parts] == [message.body for _, message in inside]
        keys = [decode(part.properties)["UNIQ_KEY"] for part in parts]
        assert tuple(keys) == envelope.parts
        for _, message in inside:
            assert message.wait_stored == first.wait_stored
            assert message.delay_level == 0
            assert message.priority is None
            assert len(message.body) < JAVA_PACKING.compress_over_bytes


@pytest.mark.parametrize(
    "alone",
    [
        Message("orders", b"x" * 4096),
        Message("orders", b"x", delay_level=1),
        Message("orders", b"x", delay=timedelta(seconds=1)),
        Message("orders", b"x", priority=0),
    ],
)
def test_what_cannot_be_in_a_batch_goes_alone_and_keeps_its_place(alone: Message) -> None:
    one = Message("orders", b"1")
    found = split([one, one, alone, one, one])
    assert [
        [place for place, _ in each.messages] for each in found if isinstance(each, Parcel)
    ] == [[0, 1], [2], [3, 4]]


def test_nothing_makes_no_request() -> None:
    assert split([]) == []
