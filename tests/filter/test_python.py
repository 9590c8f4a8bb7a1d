from __future__ import annotations

from typing import Any

import pytest

from sprocket.base.errors import SubscriptionInvalid, UsageError
from sprocket.filter.python import (
    SOURCE_BYTES_MAX,
    PythonFilter,
    Upload,
    is_name,
    parts_of,
    version_of,
)


def cheap(message: Any) -> bool:
    return float(message.properties["amount"]) < 5


def test_a_function_brings_its_source_and_its_name() -> None:
    found = PythonFilter(cheap)
    assert found.name == "cheap"
    assert found.source is not None
    assert found.source.startswith(b"def cheap(message: Any) -> bool:\n")
    assert found.expression == f"cheap@{version_of(found.source)}"
    assert found.matches({})


def test_a_function_inside_of_another_one_counts_too() -> None:
    def inner(message: Any) -> bool:
        return True

    source = PythonFilter(inner).source
    assert source is not None
    assert source.startswith(b"def inner(")


def test_a_name_alone_asks_for_what_was_uploaded() -> None:
    found = PythonFilter(None, "cheap")
    assert (found.expression, found.source, found.version) == ("cheap", None, "")


def test_the_same_source_is_the_same_version() -> None:
    first, second = (PythonFilter(text, "f") for text in ("x", "x "))
    assert first.version == PythonFilter("x", "f").version
    assert first.version != second.version


@pytest.mark.parametrize("wrong", [lambda message: True, len, object()])
def test_what_has_no_def_of_its_own_is_refused(wrong: Any) -> None:
    with pytest.raises((UsageError, AttributeError)):
        PythonFilter(wrong, "f")


@pytest.mark.parametrize("name", ["", "1a", "a b", "a@b", "a" * 300, "a..b", "ä", "a\n"])
def test_names_that_no_function_has_are_refused(name: str) -> None:
    assert not is_name(name)
    with pytest.raises(UsageError):
        PythonFilter("x", name)


def test_a_source_is_not_empty_and_not_long() -> None:
    for text in ("", "x" * (SOURCE_BYTES_MAX + 1)):
        with pytest.raises(UsageError):
            PythonFilter(text, "f")


def test_an_expression_is_a_name_and_maybe_a_version() -> None:
    assert parts_of("org.shop.Cheap") == ("org.shop.Cheap", "")
    assert parts_of("cheap@0123456789abcdef") == ("cheap", "0123456789abcdef")
    for wrong in (None, "", "cheap@", "cheap@xyz", "*", "a || b"):
        with pytest.raises(SubscriptionInvalid):
            parts_of(wrong)


def test_a_signature_covers_all_that_is_asked() -> None:
    asked = Upload("g", "t", "f", "0" * 16, 17)
    signature = asked.signature("secret")
    assert signature == asked.signature("secret")
    others = [
        asked._replace(group="h"), asked._replace(topic="u"), asked._replace(name="e"),
        asked._replace(version="1" * 16), asked._replace(signed_ms=18),
    ]  # fmt: skip
    assert signature not in {other.signature("secret") for other in others}
    assert signature != asked.signature("other")
