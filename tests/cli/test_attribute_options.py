"""Attributes as options."""

from __future__ import annotations

import pytest

from sprocket.base.errors import UsageError
from sprocket.cli.attribute_options import attribute_changes


def test_options_name_what_is_set_and_what_is_taken_away() -> None:
    assert attribute_changes(None) is None
    assert attribute_changes(["a=1", "+b=x y"], ["c"], "fifo") == {
        "a": "1", "b": "x y", "message.type": "FIFO", "c": None,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("given", "removed"),
    [(["a"], []), (["a="], []), (["=1"], []), (["a=1", "a=2"], []), (["a=1"], ["a"]),
     (["a=1,b=2"], []), (["a-b=1"], []), ([], ["-a"])],
)  # fmt: skip
def test_what_no_request_can_carry_is_refused(given: list[str], removed: list[str]) -> None:
    with pytest.raises(UsageError):
        attribute_changes(given, removed)


def test_a_message_type_is_given_once() -> None:
    with pytest.raises(UsageError, match="given twice"):
        attribute_changes(["message.type=FIFO"], None, "FIFO")
