"""Values are columns exactly as they are, or do not fit."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest

pytest.importorskip("pyarrow")

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from sprocket.base.errors import UsageError
from sprocket.schemas.arrow_columns import ValueColumn
from sprocket.schemas.errors import BodyMismatch

UTC_TIME = pa.timestamp("us", tz="UTC")
AT = datetime(2030, 1, 31, 8, tzinfo=UTC)


def through(kind: pa.DataType, value: Any) -> Any:
    column = ValueColumn(kind)
    return column.array([column.fitted(value), None]).to_pylist()[0]


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        (pa.int32(), (1 << 31) - 1, (1 << 31) - 1),
        (pa.int64(), -(1 << 63), -(1 << 63)),
        (pa.float64(), 3, 3.0),
        (pa.float32(), math.inf, math.inf),
        (pa.bool_(), True, True),
        (pa.string(), "ä", "ä"),
        (pa.string(), {"a": [1]}, '{"a":[1]}'),
        (pa.string(), 7, "7"),
        (pa.string(), AT, "2030-01-31T08:00:00Z"),
        (pa.binary(), b"\xff", b"\xff"),
        (pa.binary(), "/w==", b"\xff"),
        (pa.decimal128(4, 2), 1.1, Decimal("1.10")),
        (pa.decimal128(4, 2), "12.34", Decimal("12.34")),
        (pa.decimal128(20, 0), (1 << 64) - 1, Decimal((1 << 64) - 1)),
        (pa.date32(), "2030-01-31", date(2030, 1, 31)),
        (UTC_TIME, "2030-01-31T09:00:00+01:00", AT),
        (UTC_TIME, datetime(2030, 1, 31, 9, tzinfo=timezone(timedelta(hours=1))), AT),
        (pa.timestamp("us"), "2030-01-31T08:00:00", datetime(2030, 1, 31, 8)),
        (pa.duration("us"), timedelta(seconds=1), timedelta(seconds=1)),
        (pa.list_(pa.int32()), [1, None], [1, None]),
        (pa.map_(pa.int32(), pa.string()), {"7": "x"}, [(7, "x")]),
        (pa.struct([("a", pa.int32())]), {"a": 1, "unknown": 2}, {"a": 1}),
        (pa.struct([("a", pa.int32())]), {}, {"a": None}),
    ],
)
def test_what_fits_is_kept(kind: pa.DataType, value: Any, expected: Any) -> None:
    assert through(kind, value) == expected


@pytest.mark.parametrize(
    ("kind", "value", "reason"),
    [
        (pa.int32(), 1 << 31, "more than 32 bits"),
        (pa.int64(), 1 << 63, "more than 64 bits"),
        pytest.param(pa.int64(), 10**5000, "a number of", id="many digits"),
        (pa.int64(), 1.5, "not a whole number"),
        (pa.int64(), True, "not a whole number"),
        (pa.int64(), "1", "not a whole number"),
        (pa.float64(), 10**400, "too large"),
        (pa.float32(), 1e300, "too large for a float"),
        (pa.float64(), "NaN", "not a number"),
        (pa.bool_(), 1, "not true or false"),
        (pa.string(), "\ud800", "no Unicode"),
        (pa.binary(), "ä", "no base64"),
        (pa.binary(), 3, "not bytes"),
        (pa.decimal128(4, 2), 1.125, "no decimal of 4 digits"),
        (pa.decimal128(4, 2), 100, "no decimal of 4 digits"),
        (pa.decimal128(4, 2), math.nan, "no decimal"),
        (pa.decimal128(4, 2), "x", "no decimal"),
        (pa.date32(), "31.1.2030", "no date"),
        (pa.date32(), AT, "not a date"),
        (UTC_TIME, "2030-01-31T08:00:00", "has no time zone"),
        (UTC_TIME, 1_900_000_000, "not a time"),
        (UTC_TIME, datetime.max.replace(tzinfo=timezone(timedelta(hours=-1))), "outside"),
        (pa.timestamp("us"), AT, "has a time zone"),
        (pa.duration("us"), timedelta.max, "a duration of 999999999 days is too long"),
        (pa.map_(pa.int32(), pa.string()), {"\u0663": "x"}, "not a whole number"),
        (pa.list_(pa.int32()), "12", "not a list"),
        (pa.list_(pa.int32()), [1, "x"], "not a whole number"),
        (pa.map_(pa.string(), pa.string()), [1], "not a map"),
        (pa.struct([("a", pa.struct([("b", pa.int32())]))]), {"a": {"b": "x"}}, "^a: b: 'x'"),
        (pa.struct([("a", pa.int32())]), [1], "not an object"),
        (pa.struct([pa.field("a", pa.int32(), nullable=False)]), {}, "a is missing"),
    ],
)
def test_what_does_not_fit_says_where_and_why(kind: pa.DataType, value: Any, reason: str) -> None:
    with pytest.raises(BodyMismatch, match=reason):
        ValueColumn(kind).fitted(value)


def test_a_type_that_cannot_be_decoded_into_is_refused_at_once() -> None:
    with pytest.raises(UsageError, match="cannot hold"):
        ValueColumn(pa.time64("us"))


_JSON: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)
_KINDS = st.sampled_from(
    [
        pa.int32(), pa.float64(), pa.float32(), pa.string(), pa.binary(), pa.bool_(), pa.date32(),
        UTC_TIME, pa.decimal128(10, 3), pa.list_(pa.string()), pa.map_(pa.string(), pa.int64()),
        pa.struct([("a", pa.int64()), ("b", pa.list_(pa.float64()))]),
    ]
)  # fmt: skip


@given(_KINDS, _JSON)
def test_what_is_fitted_is_taken_by_arrow(kind: pa.DataType, value: Any) -> None:
    column = ValueColumn(kind)
    try:
        fitted = column.fitted(value)
    except BodyMismatch:
        return
    assert len(column.array([fitted])) == 1
