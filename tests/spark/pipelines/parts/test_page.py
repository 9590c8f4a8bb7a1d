"""The page of a report in a real Chromium: plots are whole, and hostile texts stay texts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sprocket.plots.echarts import echarts_script
from sprocket.spark.pipelines.parts.page import escaped, printable
from sprocket.spark.pipelines.parts.report import Bars, Lines, Report, Table
from tests.chromium import chromium, needs_chromium

__all__ = ["chromium"]

EVIL = "</script><script>window.owned=1</script><img src=x onerror='window.owned=2'>{{1+1}}`${3}`"
NAMES = (EVIL, "__proto__", "constructor", "image://http://example.com/x.png", "{b}", "a{c|x}")
START = 1_780_000_000_000
SPANS_MS = (0, 1, 100, 900, 2_000, 7_000, 61_000, 3_600_000, 90_000_000, 2_592_000_000)

#: Texts of a plot that stand over its edge, and labels of its time axis that are there twice.
FAULTS = """() => [...document.querySelectorAll('.plot svg')].flatMap((plot, at) => {
    const edge = plot.getBoundingClientRect();
    const texts = [...plot.querySelectorAll('text')];
    const cut = texts.filter(text => {
        const box = text.getBoundingClientRect();
        return box.left < edge.left - 1 || box.right > edge.right + 1
            || box.bottom > edge.bottom + 1;
    }).map(text => `plot ${at} cuts ${text.textContent}`);
    const times = texts.map(text => text.textContent).filter(text => /^\\d+:\\d+:\\d+/.test(text));
    const twice = times.filter((text, place) => times.indexOf(text) !== place);
    return [...cut, ...twice.map(text => `plot ${at} shows ${text} twice`)];
})"""


def hostile_report() -> Report:
    lines = {name: [(START + 60_000 * at, 10.0 * at) for at in range(200)] for name in NAMES}
    return Report(
        EVIL,
        {EVIL: EVIL},
        (
            Table(EVIL, (EVIL, "n"), [(EVIL, 1)], EVIL),
            Lines(EVIL, EVIL, lines, EVIL),
            Bars(EVIL, "B", [(name, 3.0 + at) for at, name in enumerate(NAMES)]),
        ),
    )


def spans() -> Report:
    """Plots of many spans of time: the ends of an axis are where labels are cut."""
    return Report(
        "spans",
        {},
        (
            *(
                Lines(f"{span} ms", "messages", {"a": [(START, 1.0), (START + span, 2.0e6)]})
                for span in SPANS_MS
            ),
            Bars("B", "B", [("x" * 120, 9.87e9), ("y", 0.0)]),
        ),
    )


def test_control_characters_are_shown_as_such() -> None:
    assert printable("a\x00\u202e b") == "a\ufffd\ufffd b"
    assert escaped("<\x1b>") == "&lt;\ufffd&gt;"


@needs_chromium
@pytest.mark.process
@pytest.mark.parametrize("width", [390, 1_000])
def test_plots_are_whole_and_hostile_texts_are_only_shown(
    chromium: Any, tmp_path: Path, width: int
) -> None:
    pytest.importorskip("nicegui", reason="plots need the extra reports")
    page = chromium.new_context(viewport={"width": width, "height": 800}).new_page()
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", lambda said: faults.append(said.text))
    page.on("request", lambda asked: faults.append(asked.url))
    path = tmp_path / "report.html"
    for report, plots in ((hostile_report(), 2), (spans(), 11)):
        path.write_text(report.html(now_ms=START, script=echarts_script()), encoding="utf-8")
        page.goto(path.as_uri())
        assert page.evaluate("document.querySelectorAll('.plot svg').length") == plots
        assert page.evaluate("document.querySelectorAll('details[open]').length") == 0
        assert page.evaluate("document.documentElement.scrollWidth - window.innerWidth") <= 0
        assert page.evaluate("window.owned") is None
        if plots == 11:
            assert page.evaluate(FAULTS) == []
        else:
            assert EVIL in page.inner_text("body")
            assert page.evaluate("document.querySelectorAll('img').length") == 0
    assert [fault for fault in faults if not fault.startswith(path.as_uri())] == []


@needs_chromium
@pytest.mark.process
def test_a_script_that_is_not_the_page_s_is_not_run(chromium: Any, tmp_path: Path) -> None:
    text = hostile_report().html(script="window.drawn = 1")
    path = tmp_path / "report.html"
    path.write_text(text.replace("</body>", "<script>window.owned = 1</script></body>"))
    page = chromium.new_page()
    page.goto(path.as_uri())
    assert page.evaluate("[window.drawn, window.owned]") == [1, None]
    # What draws is broken here: the figures stay to be read.
    assert page.evaluate("document.querySelectorAll('details[open]').length") == 2
