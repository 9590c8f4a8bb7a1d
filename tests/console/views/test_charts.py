"""The options of plots."""

from __future__ import annotations

import json

from sprocket.console.views.charts import line_options


def test_lines_have_names_and_gaps() -> None:
    options = line_options({"<b>": [(1, 2.0), (2, None)]}, highest=100, is_whole=True)
    assert options["series"][0]["name"] == "<b>"
    assert options["series"][0]["data"] == [[1, 2.0], [2, None]]
    assert options["yAxis"]["max"] == 100
    assert options["yAxis"]["minInterval"] == 1
    # Tooltips are drawn as text: no HTML is made of a name.
    assert options["tooltip"]["renderMode"] == "richText"


def test_options_contain_nothing_that_nicegui_would_run() -> None:
    # A key that begins with a colon is taken for JavaScript.
    assert '":' not in json.dumps(line_options({":a": []})).replace('":', "", 0).replace(
        '": ', ""
    ).replace('":a"', "")
