"""How results are printed."""

from __future__ import annotations

import pytest

from sprocket.cli import render


def test_columns_are_aligned_numbers_to_the_right(capsys: pytest.CaptureFixture[str]) -> None:
    render.table(("name", "count"), [("a", 5), ("long", 10)])
    assert capsys.readouterr().out == "name  count\na         5\nlong     10\n"


def test_nothing_and_truth_have_words(capsys: pytest.CaptureFixture[str]) -> None:
    render.table(("a", "b"), [(None, True), ("x", False)])
    assert capsys.readouterr().out == "a  b\n-  yes\nx  no\n"


def test_a_table_without_rows_has_its_headings(capsys: pytest.CaptureFixture[str]) -> None:
    render.table(("a", "b"), [])
    assert capsys.readouterr().out == "a  b\n"


def test_json_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    render.json({"b": "two\nlines", "a": 1})
    assert capsys.readouterr().out == '{"b":"two\\nlines","a":1}\n'


def test_progress_is_silent_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with render.progress("sending") as advance:
        advance(1)
    assert capsys.readouterr().err == ""
