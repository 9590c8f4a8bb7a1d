"""The options of plots."""

from __future__ import annotations

from typing import Any

from sprocket.console.views.charts import line_options


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
