from __future__ import annotations

from html.parser import HTMLParser

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
    harmless = Page(report("x").html())
    page = Page(report(text).html())
    assert page.tags == harmless.tags
    assert not page.values


def test_a_page_needs_nothing_from_elsewhere_and_has_its_plots_in_it() -> None:
    text = report("orders").html(now_ms=0)
    page = Page(text)
    assert page.tags.count("svg") == 2
    assert not {"script", "link", "img", "iframe", "object"} & set(page.tags)
    assert "http" not in text.replace("http-equiv", "").replace("http://www.w3.org/2000/svg", "")
    assert "1970-01-01 00:00:00 UTC" in text
    assert "12,345" in page.texts


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
