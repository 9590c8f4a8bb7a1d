"""Texts become values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from sprocket.base.config import setting, settings_of
from sprocket.base.errors import ConfigError
from sprocket.base.setting_values import from_text, without_masks


@dataclass(frozen=True)
class DoorConfig:
    """A part that only this test has."""

    file_bytes: int = setting(1, "")
    count: int | None = setting(1, "")
    is_open: bool = setting(True, "")
    names: tuple[str, ...] = setting((), "")
    mode: str = setting("A", "", choices=("A", "B"))


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("file_bytes", "64MiB", 64 << 20),
        ("file_bytes", " 1 K ", 1024),
        ("count", "", None),
        ("count", "7", 7),
        ("is_open", "YES", True),
        ("is_open", "0", False),
        ("names", "a; b,c;", ("a", "b", "c")),
        ("mode", "b", "B"),
    ],
)
def test_a_text_becomes_a_value(name: str, text: str, value: Any) -> None:
    assert from_text(settings_of(DoorConfig)[name], text) == value


@pytest.mark.parametrize(
    ("name", "text", "complaint"),
    [
        ("file_bytes", "64 cups", "takes a size in bytes"),
        ("count", "1.5", "takes a whole number, not '1.5'"),
        ("is_open", "perhaps", "takes true or false, not 'perhaps'"),
        ("mode", "\udce9", "is not UTF-8 (byte 0xE9)"),
    ],
)
def test_a_text_that_is_none_is_refused(name: str, text: str, complaint: str) -> None:
    with pytest.raises(ConfigError) as raised:
        from_text(settings_of(DoorConfig)[name], text)
    assert complaint in str(raised.value)


def test_lines_that_stand_for_a_secret_are_taken_out_of_a_listing() -> None:
    text = "a=1\nb.secret=(secret)\nc = (secret) \r\nd=(secret) or not\n#(secret)\n"
    assert without_masks(text) == "a=1\n\n\nd=(secret) or not\n#(secret)\n"
