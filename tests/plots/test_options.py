"""The options of plots."""

from __future__ import annotations

from typing import Any

from sprocket.plots.options import bar_options, line_options, number


def test_lines_have_names_and_gaps() -> None:
    options = line_options({"<b>": [(1, 2.0), (2, None)]}, highest=100, is_whole=True)
    assert options["series"][0]["name"] == "<b>"
    assert options["series"][0]["data"] == [[1, 2.0], [2, None]]
    assert options["yAxis"]["max"] == 100
    assert options["yAxis"]["minInterval"] == 1
    # Tooltips are drawn as text: no HTML is made of a name.
    assert options["tooltip"]["renderMode"] == "richText"


def test_the_axis_ends_now_and_begins_where_there_are_values() -> None:
    now, hour = 10_000_000, 3_600_000
    axis = line_options({"a": [(9_000_000, 1.0)]}, span=(now - hour, now))["xAxis"]
    assert (axis["min"], axis["max"]) == (9_000_000, now)
    axis = line_options({"a": [(now, 1.0)]}, span=(now - hour, now))["xAxis"]
    assert (axis["min"], axis["max"]) == (now - 60_000, now)
    assert line_options({}, span=(now - hour, now))["xAxis"]["min"] == now - hour


def test_no_name_becomes_a_key_which_nicegui_would_run_as_code() -> None:
    def keys(value: Any) -> set[str]:
        if isinstance(value, dict):
            return set(value).union(*map(keys, value.values()))
        if isinstance(value, list | tuple):
            return set().union(*map(keys, value))
        return set()

    assert not [key for key in keys(line_options({":name": [(1, 2.0)]})) if key.startswith(":")]


def test_a_single_time_stands_in_the_middle_of_a_minute() -> None:
    axis = line_options({"a": [(90_000, 1.0)], "b": [(90_000, 2.0)]})["xAxis"]
    assert (axis["min"], axis["max"]) == (60_000, 120_000)
    assert "min" not in line_options({"a": [(0, 1.0), (1, 1.0)]})["xAxis"]
    assert "min" not in line_options({})["xAxis"]


def test_bars_have_their_values_as_texts_and_no_name_is_a_template() -> None:
    made = bar_options([("{b}", 1500.0), ("image://x", 2.0)], unit="{c}")["baseOption"]
    assert made["yAxis"]["data"] == ["{b}", "image://x"]
    labels = [each["label"]["formatter"] for each in made["series"][0]["data"]]
    assert labels == ["1.5k (c)", "2 (c)"]


def test_numbers_are_short() -> None:
    shown = [number(value) for value in (0, 0.5, 12, 1500, 2e6, 3.25e9)]
    assert shown == ["0", "0.5", "12", "1.5k", "2M", "3.25G"]
