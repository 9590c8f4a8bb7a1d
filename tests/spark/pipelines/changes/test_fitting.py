"""Texts become values of columns exactly, or are refused."""

from __future__ import annotations

import base64
import datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sprocket.spark.pipelines.changes.fitting import fit, fitted
from sprocket.spark.pipelines.changes.json_values import UnfitMessage

_AT = datetime.datetime(2030, 1, 31, 10, 0)


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("string", "é\x00", "é\x00"),
        ("boolean", "TRUE", True),
        ("boolean", "0", False),
        ("tinyint", "-128", -128),
        ("bigint", "9223372036854775807", 2**63 - 1),
        ("decimal(20,0)", "18446744073709551615", Decimal(2**64 - 1)),
        ("decimal(10,2)", "1.5", Decimal("1.50")),
        ("decimal(10,2)", "15e-1", Decimal("1.50")),
        ("double", "1.5e3", 1500.0),
        ("date", "2024-02-29", datetime.date(2024, 2, 29)),
        ("timestamp_ntz", "2030-01-31 10:00:00", _AT),
        ("timestamp_ntz", "2030-01-31T10:00:00.000001999", _AT.replace(microsecond=1)),
        ("timestamp", "2030-01-31T10:00:00Z", _AT.replace(tzinfo=datetime.UTC)),
        ("timestamp", "2030-01-31 18:00:00+0800", _AT.replace(tzinfo=datetime.UTC)),
        ("timestamp", "2030-01-31 10:00", _AT.replace(tzinfo=datetime.UTC)),
        ("binary", "AAE=", b"\x00\x01"),
    ],
)
def test_a_text_is_a_value(kind: str, text: str, value: Any) -> None:
    assert fitted("c", text, kind) == value
    assert fitted("c", None, kind) is None


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("string", "\ud800"),
        ("boolean", "yes"),
        ("tinyint", "128"),
        ("int", "1.0"),
        ("int", "١"),
        ("bigint", "9" * 5000),
        ("decimal(10,2)", "1.555"),
        ("decimal(3,2)", "10.00"),
        ("decimal(10,2)", "1e9999"),
        ("decimal(10,2)", "NaN"),
        ("double", "1e400"),
        ("double", "inf"),
        ("float", "1e39"),
        ("date", "2023-02-29"),
        ("date", "20230228"),
        ("timestamp_ntz", "2030-01-31 10:00:00Z"),
        ("timestamp_ntz", "2030-01-31 25:00:00"),
        ("timestamp", "0001-01-01 00:00:00+23:00"),
        ("binary", "no base64!"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_column(kind: str, text: str) -> None:
    with pytest.raises(UnfitMessage, match=r"type: 'c' is .*, and cannot be"):
        fitted("c", text, kind)


@given(st.decimals(allow_nan=False, allow_infinity=False), st.integers(0, 10))
def test_a_decimal_is_exact_or_refused(number: Decimal, scale: int) -> None:
    try:
        found = fitted("c", format(number, "f"), f"decimal(20,{scale})")
    except UnfitMessage:
        return
    assert found == number


@given(st.binary())
def test_bytes_come_back(value: bytes) -> None:
    assert fitted("c", base64.b64encode(value).decode(), "binary") == value


@given(st.datetimes())
def test_times_come_back(at: datetime.datetime) -> None:
    assert fitted("c", str(at), "timestamp_ntz") == at
    assert fitted("c", f"{at}Z", "timestamp") == at.replace(tzinfo=datetime.UTC)


def test_a_type_with_parts_is_filled_by_nothing() -> None:
    with pytest.raises(ValueError, match="array"):
        fit("array<int>")
