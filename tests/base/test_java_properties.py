"""Java's properties files."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as some

from sprocket.base.java_properties import properties


def pairs(text: str) -> list[tuple[str, str]]:
    return [(each.key, each.value) for each in properties(text)]


def test_properties_are_read_as_java_reads_them() -> None:
    text = "a=1\n  b : two words  \nc three\nd=x\\\n   y\ne\\=f=\\u0041\\t\\\\\n#no\n\ng\nh=\\"
    assert [each[:3] for each in properties(text)] == [
        (1, "a", "1"), (2, "b", "two words"), (3, "c", "three"), (4, "d", "xy"),
        (6, "e=f", "A\t\\"), (9, "g", ""), (10, "h", ""),
    ]  # fmt: skip


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_all_line_ends_are_line_ends(end: str) -> None:
    found = list(properties(end.join(["a=1", "b=\\", "  2", "# c \\", "d=3"])))
    assert [(each.line, each.key, each.value) for each in found] == [
        (1, "a", "1"), (2, "b", "2"), (5, "d", "3"),
    ]  # fmt: skip


def test_only_javas_blanks_are_blanks() -> None:
    assert pairs("a\x0bb=1\nc\u00a0d=2\ne\u2028f=3\n\x0cg\x0c=\x0c4\x0c\n") == [
        ("a\x0bb", "1"), ("c\u00a0d", "2"), ("e\u2028f", "3"), ("g", "4"),
    ]  # fmt: skip


def test_escapes_above_the_basic_plane_are_two_escapes() -> None:
    assert pairs("a=\\ud83d\\ude00") == [("a", "\U0001f600")]


@pytest.mark.parametrize(
    ("line", "damage"),
    [
        ("a=D:\\users", "\\users"),
        ("a=\\u00g0", "\\u00g0"),
        ("\\u=1", "\\u=1"),
        ("a=D:\\\\users", None),
        ("a=\\\\\\u0041", None),
        ("a=\\ta", None),
    ],
)
def test_an_escape_that_is_none_is_found(line: str, damage: str | None) -> None:
    (found,) = properties(line)
    assert found.damage == damage


@given(some.text(alphabet="a=: \\u0\r\n#\t", max_size=60))
def test_any_text_is_read(text: str) -> None:
    for each in properties(text):
        assert "\n" not in each.key or "\\n" in text
