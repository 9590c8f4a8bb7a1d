"""Sends written by a form, beside the general way."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sprocket.base.errors import LocalProtocolError
from sprocket.protocol.connection import Connection
from sprocket.protocol.frame import encode_request
from sprocket.protocol.requests.send import SendMessageV2
from sprocket.protocol.sending import SendForm

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


@given(names=st.tuples(texts, texts, texts), properties=texts, numbers=st.tuples(
    st.integers(0, 99), st.integers(-(2**31), 2**31 - 1), st.integers(0, 2**62)),
    body=st.binary(max_size=9), opaque=st.integers(0, 2**31 - 1))  # fmt: skip
def test_a_form_writes_what_the_header_would(
    names: tuple[str, str, str],
    properties: str,
    numbers: tuple[int, int, int],
    body: bytes,
    opaque: int,
) -> None:
    group, topic, broker = names
    sys_flag, flag, born_ms = numbers
    header = SendMessageV2(
        producer_group=group,
        topic=topic,
        default_topic_queue_nums=8,
        queue_id=3,
        sys_flag=sys_flag,
        born_timestamp=born_ms,
        flag=flag,
        properties=properties,
        bname=broker,
    )
    said = SimpleNamespace(sys_flag=sys_flag, born_ms=born_ms, flag=flag, properties=properties)
    head = SendForm(header).head(opaque, said, len(body))
    (written,) = Connection().receive(head + body)
    (meant,) = Connection().receive(b"".join(encode_request(header, opaque, body=body)))
    assert written.fields == meant.fields
    assert written.read(SendMessageV2) == header
    assert (written.code, written.opaque, written.flag, bytes(written.body)) == (
        meant.code, meant.opaque, meant.flag, body,
    )  # fmt: skip
    assert (written.language, written.version) == (meant.language, meant.version)


def test_a_property_that_is_no_text_is_refused() -> None:
    form = SendForm(SendMessageV2(topic="t", queue_id=0))
    said = SimpleNamespace(sys_flag=0, born_ms=0, flag=0, properties="\ud800")
    with pytest.raises(LocalProtocolError, match="not Unicode"):
        form.head(1, said, 0)
