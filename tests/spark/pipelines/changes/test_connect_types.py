"""Kafka Connect's schemas with Debezium's meanings."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sprocket.spark.pipelines.changes.connect_types import FieldType, text, types
from sprocket.spark.pipelines.changes.json_values import NumberText, UnfitMessage

_VARIABLE = "io.debezium.data.VariableScaleDecimal"
_DEBEZIUM = "io.debezium.time."
_BEFORE = "1969-12-31 23:59:59"
_DECIMAL = "org.apache.kafka.connect.data.Decimal"


def _types(*fields: dict[str, Any]) -> dict[str, FieldType]:
    return types({"type": "struct", "fields": list(fields)})


def _one(kind: str, name: str | None = None, **more: Any) -> FieldType:
    return _types({"field": "c", "type": kind, "name": name, **more})["c"]


@pytest.mark.parametrize(
    ("kind", "name", "value", "ddl", "wanted"),
    [
        ("int16", None, "7", "smallint", "7"),
        ("float", None, "1.5", "float", "1.5"),
        ("int32", f"{_DEBEZIUM}Date", "18993", "date", "2022-01-01"),
        ("int32", "org.apache.kafka.connect.data.Date", "-1", "date", "1969-12-31"),
        # The example of Debezium's page: a DATETIME of 2018-06-20 06:37:03.
        ("int64", f"{_DEBEZIUM}Timestamp", "1529476623000", "timestamp_ntz", "2018-06-20 06:37:03"),
        ("int64", f"{_DEBEZIUM}MicroTimestamp", "-1", "timestamp_ntz", f"{_BEFORE}.999999"),
        ("int64", f"{_DEBEZIUM}NanoTimestamp", "-1", "timestamp_ntz", f"{_BEFORE}.999999"),
        ("int64", f"{_DEBEZIUM}MicroTime", "37230000001", "string", "10:20:30.000001"),
        ("int32", "org.apache.kafka.connect.data.Time", "-90000000", "string", "-25:00:00"),
        ("int64", f"{_DEBEZIUM}Timestamp", None, "timestamp_ntz", None),
    ],
)  # fmt: skip
def test_a_value_is_what_its_meaning_says(
    kind: str, name: str | None, value: str | None, ddl: str, wanted: str | None
) -> None:
    found = _one(kind, name)
    assert found.ddl == ddl
    assert (None if value is None else text(NumberText(value), found)) == wanted


def test_types_without_a_form_of_their_own() -> None:
    found = _types(
        {"field": "a", "type": "array", "items": {"type": "int32"}},
        {"field": "b", "type": "bytes"},
        {"field": "z", "type": "string", "name": "io.debezium.time.ZonedTimestamp"},
        {"field": "e", "type": "string", "name": "io.debezium.data.Enum"},
        {"field": "s", "type": 7},
        {"type": "int32"},
        "no field",  # type: ignore[arg-type]
    )
    assert {name: one.ddl for name, one in found.items()} == {
        "a": "string", "b": "binary", "z": "timestamp", "e": "string", "s": "string",
    }  # fmt: skip
    assert text([NumberText("1.0"), None], found["a"]) == "[1.0,null]"
    assert types(None) == types({"fields": 5}) == {}


@given(st.integers(-(10**37), 10**37), st.integers(0, 38))
def test_decimals_are_exact(number: int, scale: int) -> None:
    kind = _one("bytes", _DECIMAL, parameters={"scale": str(scale)})
    size = number.bit_length() // 8 + 1
    value = base64.b64encode(number.to_bytes(size, signed=True)).decode()
    found = text(value, kind)
    assert found is not None
    assert kind.ddl == f"decimal(38,{scale})"
    digits = f"{abs(number):0{scale + 1}}"
    split = len(digits) - scale
    plain = f"{digits[:split]}.{digits[split:]}" if scale else digits
    assert found == ("-" if number < 0 else "") + plain


def test_decimals_of_other_forms() -> None:
    parameters = {"scale": "2", "connect.decimal.precision": "10"}
    assert _one("bytes", _DECIMAL, parameters=parameters).ddl == "decimal(10,2)"
    assert _one("bytes", _DECIMAL, parameters={"scale": "50"}).ddl == "string"
    assert text(NumberText("1.50"), _one("bytes", _DECIMAL, parameters=parameters)) == "1.50"
    variable = _one("struct", _VARIABLE)
    value = {"scale": NumberText("1"), "value": base64.b64encode(b"\x0f").decode()}
    assert text(value, variable) == "1.5"


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (FieldType("date", "io.debezium.time.Date"), "2022-01-01"),
        (FieldType("date", "io.debezium.time.Date"), NumberText("9999999999")),
        (FieldType("timestamp_ntz", "io.debezium.time.Timestamp"), NumberText("9" * 18)),
        (FieldType("decimal(10,2)", _DECIMAL, 2), "no base64"),
        (FieldType("decimal(10,2)", _DECIMAL, 2), base64.b64encode(b"\x7f" * 5000).decode()),
        (FieldType("string", _VARIABLE), {"scale": NumberText("9" * 9)}),
    ],
)  # fmt: skip
def test_what_has_another_form_is_refused(kind: FieldType, value: Any) -> None:
    with pytest.raises(UnfitMessage, match="type"):
        text(value, kind)


@pytest.mark.parametrize("parameters", [None, {}, {"scale": "x"}, {"scale": "5000"}])
def test_a_decimal_without_a_sane_scale_is_refused(parameters: Any) -> None:
    with pytest.raises(UnfitMessage, match="has a scale"):
        _one("bytes", _DECIMAL, parameters=parameters)
