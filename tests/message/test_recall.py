"""Handles by which messages are taken back."""

from __future__ import annotations

import pytest

from sprocket.base.errors import UsageError
from sprocket.message.recall import RecallHandle


def test_a_handle_is_what_java_makes_and_reads_back() -> None:
    handle = RecallHandle("T", "broker-a", "1704067201001", "7F0000012265DF6AF1D8000000000000")
    text = handle.encode()
    assert text == (
        "djEgVCBicm9rZXItYSAxNzA0MDY3MjAxMDAxIDdGMDAwMDAxMjI2NURGNkFGMUQ4MDAwMDAwMDAwMDAw"
    )
    assert RecallHandle.parse(text) == handle
    assert RecallHandle.parse(text.rstrip("=")) == handle


@pytest.mark.parametrize("text", [
    "", "x", "djE=", "djIgVCBiIDEgSw==", "größe", "djEgVCBiIDE=", "A" * 5000, "****", "djEg\nVCBi",
])  # fmt: skip
def test_what_is_no_handle_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="recall handle is invalid"):
        RecallHandle.parse(text)
