from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sprocket.message.properties import decode_bytes, encode
from sprocket.spark.records.property_texts import PropertyTexts

words = st.text(st.characters(blacklist_characters="\0\1\2", codec="utf-8"), min_size=1, max_size=6)
maps = st.lists(st.dictionaries(words, words, max_size=4), max_size=5)


def texts_of(raws: list[bytes]) -> PropertyTexts:
    ends = np.cumsum([1 + len(raw) for raw in raws], dtype=np.int64)
    begin = ends - [len(raw) for raw in raws] if raws else ends
    return PropertyTexts(b"".join(b"\x02" + raw for raw in raws), begin, ends)


@given(maps, st.booleans())
def test_well_formed_text_takes_the_fast_way(
    properties: list[dict[str, str]], is_open: bool
) -> None:
    raws = [encode(one).encode() for one in properties]
    texts = texts_of([raw[:-1] if is_open and raw else raw for raw in raws])
    assert texts.is_regular
    found = texts.maps()
    found.validate(full=True)
    assert [dict(one) for one in found.to_pylist()] == properties


@given(maps, words)
def test_one_property_is_found_in_each_record_that_has_it(
    properties: list[dict[str, str]], name: str
) -> None:
    names = {name, *(key for one in properties for key in one)}
    texts = texts_of([encode(one).encode() for one in properties])
    for wanted in names:
        found = texts.values_of(wanted)
        found.validate(full=True)
        assert found.to_pylist() == [one.get(wanted) for one in properties]


@pytest.mark.parametrize(
    "raw",
    [
        b"name", b"name\x02", b"\x01value\x02", b"name\x01\x02", b"a\x01b\x01c\x02", b"\x02\x02",
        b"a\x01b\x02\x02", b"a\x01\xff\x02", b"a\x01\0\x02", b"\x02a\x01b\x02", b"a\x01b\x02c",
    ],
)  # fmt: skip
def test_bent_text_is_read_as_java_reads_it(raw: bytes) -> None:
    texts = texts_of([b"k\x01v\x02", raw, b"", b"TAGS\x01t"])
    found = [dict(one) for one in texts.maps().to_pylist()]
    assert found == [{"k": "v"}, decode_bytes(raw), {}, {"TAGS": "t"}]
    assert texts.values_of("TAGS").to_pylist() == [None, None, None, "t"]


def test_of_a_repeated_name_the_last_value_counts() -> None:
    assert texts_of([b"TAGS\x01a\x02x\x01y\x02TAGS\x01b\x02"]).values_of("TAGS").to_pylist() == [
        "b"
    ]
