from __future__ import annotations

import base64
import hashlib
import json
import math
import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sprocket.spark.pipelines.parts.report import Bars, Lines, Report, Table, moment, plain

HOSTILE = "</td><script>alert('1')</script>&\x00\x1b[31m\u202e\"onload=x"


class Page(HTMLParser):
    """The tags and texts of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.values: list[str | None] = []
        self.texts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.values += [value for name, value in attrs if name in ("src", "href")]
        self.values += [name for name, _ in attrs if name.startswith("on")]

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def report(text: str) -> Report:
    return Report(
        text,
        {text: text, "rows": 12345},
        (
            Table(text, ("topic", text), [(text, 1), (text, 2.5)], text),
            Lines(text, text, {text: [(0, 1.0), (60_000, 2.0)]}),
            Bars(text, text, [(text, 3)]),
        ),
    )


@given(st.text(min_size=1, max_size=50) | st.just(HOSTILE))
def test_what_comes_out_of_messages_is_only_ever_text(text: str) -> None:
    harmless = Page(report("x").html(script="draw()"))
    page = Page(report(text).html(script="draw()"))
    assert page.tags == harmless.tags
    assert not page.values


def test_a_page_needs_nothing_from_elsewhere_and_has_its_plots_in_it() -> None:
    text = report("orders").html(now_ms=0, script="draw()")
    page = Page(text)
    assert page.tags.count("figure") == 2
    assert not {"link", "img", "iframe", "object"} & set(page.tags)
    assert "http" not in text.replace("http-equiv", "")
    assert "1970-01-01 00:00:00 UTC" in text
    assert "12,345" in page.texts


def test_only_the_scripts_of_the_page_may_run() -> None:
    text = report(HOSTILE).html(script="draw()")
    scripts = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    assert scripts[0] == "draw()"
    hashes = [base64.b64encode(hashlib.sha256(one.encode()).digest()).decode() for one in scripts]
    allowed = re.search(r"script-src ([^\"]*)\">", text)
    assert allowed
    assert allowed[1] == " ".join(f"'sha256-{one}'" for one in hashes)


def test_without_the_library_there_are_the_figures_and_a_hint() -> None:
    text = report("orders").html()
    assert "script-src 'none'" in text
    assert "<script" not in text
    assert "pip install" in text
    assert text.count("<details open>") == 2
    assert "<td>1970-01-01 00:01:00</td><td class=number>2.00</td>" in text
    nothing = Report("x", {}, (Lines("a", "b", {"c": []}), Bars("a", "b", [("c", math.nan)])))
    assert nothing.html().count("nothing to plot") == 2
    assert "pip install" not in nothing.html()
    assert (report("x").has_plots, nothing.has_plots) == (True, False)


@given(
    st.dictionaries(
        st.text(max_size=60),
        st.lists(st.tuples(st.integers(0, 2**42), st.floats()), max_size=5),
        max_size=12,
    ),
    st.lists(st.tuples(st.text(max_size=60), st.floats()), max_size=12),
)
def test_plots_are_json_whatever_names_and_values_are(
    lines: dict[str, list[tuple[int, float]]], bars: list[tuple[str, float]]
) -> None:
    made = Report("x", {}, (Lines("a", "b", lines), Bars("c", "d", bars)))
    text = made.html(script="draw()")
    found = re.search(r'<script type="application/json" id="plots">(.*?)</script>', text)
    assert (found is not None) == made.has_plots
    if found:
        json.loads(found[1], parse_constant=lambda name: pytest.fail(name))


def test_json_has_the_same_figures() -> None:
    found = report("in all").as_json()
    assert found["report"] == "in all"
    assert (found["in_all"], found["rows"]) == ("in all", 12345)
    table, lines, bars = found["sections"]
    assert table["rows"] == [{"topic": "in all", "in_all": 1}, {"topic": "in all", "in_all": 2.5}]
    assert table["note"] == "in all"
    assert lines["lines"] == {"in all": [(0, 1.0), (60_000, 2.0)]}
    assert bars["bars"] == [{"name": "in all", "value": 3}]


def test_values_are_shown_as_people_read_them() -> None:
    assert [plain(one) for one in (None, True, 1234, 0.5, "x")] == [
        "-",
        "yes",
        "1,234",
        "0.50",
        "x",
    ]
    assert moment(None) is None
