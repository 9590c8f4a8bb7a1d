"""Records of many messages at once."""

from __future__ import annotations

import struct
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sprocket.message.draft_batch import DraftBatch, encode_batch
from sprocket.message.hosts import pack
from sprocket.message.record import Encoder, topic_part

HOSTS = [pack("10.0.0.7:4000"), pack("[2001:db8::1]:4000")]


@dataclass
class Some:
    """A message: flag, body, properties, keys, unique key."""

    flag: int
    body: bytes
    text: bytes
    keys: str
    unique_key: bytes


some = st.lists(
    st.builds(
        Some,
        st.integers(-(2**31), 2**31 - 1),
        st.binary(max_size=30),
        st.binary(max_size=300),
        st.sampled_from(["", "k", "k l"]),
        st.sampled_from([b"", b"U1", "größe".encode()]),
    ),
    min_size=1,
    max_size=6,
)


def batch(messages: list[Some], born_host: bytes, end: bytes = b"C\x01c\x02") -> DraftBatch:
    return DraftBatch(
        "orders",
        3,
        sys_flag=0,
        born_ms=1_700_000_000_123,
        born_host=born_host,
        flags=[each.flag for each in messages],
        bodies=[each.body for each in messages],
        properties=[each.text for each in messages],
        properties_end=end,
        tag_codes=[-n for n in range(len(messages))],
        keys=[each.keys for each in messages],
        unique_keys=[each.unique_key for each in messages],
    )


@given(some, st.sampled_from(HOSTS), st.sampled_from(HOSTS), st.sampled_from([5, 126, 127, 128]))
def test_the_records_are_those_of_the_messages_one_by_one(
    messages: list[Some], born_host: bytes, store_host: bytes, topic_bytes: int
) -> None:
    encoder, topic = Encoder(store_host), topic_part(b"t" * topic_bytes)
    made = batch(messages, born_host)
    found = encode_batch(encoder, made, topic, log_offset=1 << 40, queue_offset=7, stored_ms=9)
    at, wanted = 1 << 40, []
    for place, draft in enumerate(made.drafts()):
        wanted.append(encoder.encode(draft, topic, at, 7 + place, 9))
        assert found.log_offsets[place] == at
        assert found.sizes[place] == len(wanted[-1])
        at += len(wanted[-1])
    assert found.content == b"".join(wanted)


def test_the_drafts_of_a_batch_are_its_messages() -> None:
    (draft,) = batch([Some(1, b"x", b"a\x01b\x02", "k", "größe".encode())], HOSTS[0]).drafts()
    assert (draft.topic, draft.queue_number, draft.body) == ("orders", 3, b"x")
    assert (draft.properties, draft.keys, draft.unique_key) == (
        b"a\x01b\x02C\x01c\x02",
        "k",
        "größe",
    )


@pytest.mark.parametrize(
    "one", [Some(1 << 31, b"", b"", "", b""), Some(0, b"", b"p" * 32767, "", b"")]
)
def test_what_fits_into_no_field_is_refused(one: Some) -> None:
    made = batch([Some(0, b"", b"", "", b""), one], HOSTS[0])
    with pytest.raises(struct.error):
        encode_batch(Encoder(HOSTS[0]), made, b"\x01t", log_offset=0, queue_offset=0, stored_ms=0)
