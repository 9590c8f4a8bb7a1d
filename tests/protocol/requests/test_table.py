from __future__ import annotations

import msgspec
import pytest

from sprocket.protocol import fields
from sprocket.protocol.codes import OwnRequestCode, RequestCode
from sprocket.protocol.command import Command, Header
from sprocket.protocol.requests.table import REQUESTS

HEADERS = sorted(
    {*REQUESTS.values(), *(kind.reply for kind in REQUESTS.values() if kind.reply)},
    key=lambda kind: kind.__name__,
)


def filled(kind: type[Header]) -> Header:
    values = {}
    for field in msgspec.structs.fields(kind):
        for value in ("text", 12, True):
            try:
                values[field.name] = msgspec.convert(value, field.type)
                break
            except msgspec.ValidationError:
                continue
    return kind(**values)


def test_every_declared_code_is_one_of_rocketmq_or_of_our_own() -> None:
    assert set(REQUESTS) <= {int(code) for code in (*RequestCode, *OwnRequestCode)}


@pytest.mark.parametrize("kind", HEADERS, ids=lambda kind: kind.__name__)
def test_a_header_with_all_its_fields_is_read_as_it_was_written(kind: type[Header]) -> None:
    header = filled(kind)
    texts = header.to_fields()
    assert len(texts) == len(kind.__struct_fields__)
    assert Command(0, source=msgspec.Raw(msgspec.json.encode(texts))).read(kind) == header
    assert Command(0, source=dict(texts)).read(kind) == header


@pytest.mark.parametrize("kind", HEADERS, ids=lambda kind: kind.__name__)
def test_headers_written_by_hand_are_written_alike(kind: type[Header]) -> None:
    header = filled(kind)
    assert header.to_fields() == fields.to_texts(header)
    for field in msgspec.structs.fields(kind):
        if field.default is None:
            setattr(header, field.name, None)
    assert header.to_fields() == fields.to_texts(header)
