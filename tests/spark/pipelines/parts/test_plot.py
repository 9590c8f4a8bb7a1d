from __future__ import annotations

import math
import re
from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st

from sprocket.spark.pipelines.parts import plot

NUMBERS = st.floats(min_value=0, max_value=1e15)


@given(NUMBERS, st.floats(min_value=1e-6, max_value=1e12))
def test_ticks_enclose_what_is_shown_and_are_few(low: float, span: float) -> None:
    marks = plot.ticks(low, low + span)
    assert len(marks) <= 8
    assert marks == sorted(marks)
    assert marks[0] <= low or math.isclose(marks[0], low, rel_tol=1e-9)
    assert marks[-1] >= low + span or math.isclose(marks[-1], low + span, rel_tol=1e-9)


def test_times_are_marked_once_and_end_with_the_plot() -> None:
    two_seconds = plot.lines({"a": [(1_700_000_000_000, 1), (1_700_000_002_000, 2)]}, unit="x")
    shown = re.findall(r'text-anchor="(\w+)">(\d\d:\d\d:\d\d)<', two_seconds)
    assert [text for _, text in shown] == ["22:13:20", "22:13:21", "22:13:22"]
    assert shown[-1][0] == "end"


def test_ticks_are_round_numbers() -> None:
    assert plot.ticks(0, 83) == [0, 20, 40, 60, 80, 100]
    assert plot.ticks(0, 0) == [0, 1]
    assert plot.ticks(0, math.inf) == [0, 1]
    assert plot.ticks(0, 5e-324) == [0, 1]
    assert plot.ticks(0, 1e-300)[-1] >= 1e-300


@given(
    st.dictionaries(
        st.text(max_size=60),
        st.lists(st.tuples(st.integers(0, 2**42), NUMBERS), max_size=5),
        max_size=12,
    )
)
def test_lines_are_well_formed_whatever_names_and_values_are(
    series: dict[str, list[tuple[int, float]]],
) -> None:
    ElementTree.fromstring(plot.lines(series, unit="<messages>"))


@given(st.lists(st.tuples(st.text(max_size=60), st.floats()), max_size=12))
def test_bars_are_well_formed_whatever_names_and_values_are(
    values: list[tuple[str, float]],
) -> None:
    ElementTree.fromstring(plot.bars(values, unit="B & b"))


def test_a_bar_is_as_long_as_its_value_and_says_it() -> None:
    drawn = ElementTree.fromstring(plot.bars([("a", 10), ("b", 5)], unit="B"))
    space = "{http://www.w3.org/2000/svg}"
    widths = [float(one.attrib["width"]) for one in drawn.iter(f"{space}rect")]
    assert widths[1] * 2 == widths[0]
    assert [one.text for one in drawn.iter(f"{space}text")] == ["a", "10 B", "b", "5 B"]


def test_numbers_are_short() -> None:
    shown = [plot.number(value) for value in (0, 0.5, 12, 1500, 2e6, 3.25e9)]
    assert shown == ["0", "0.5", "12", "1.5k", "2M", "3.25G"]
