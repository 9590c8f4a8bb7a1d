"""The report of a pipeline as people see it."""

from __future__ import annotations

from pathlib import Path

import pytest

from sprocket.cli import pipeline_report
from sprocket.spark.pipelines.parts.report import Lines, Report, Table


def test_a_report_without_the_library_of_plots_is_written_and_says_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sprocket.plots.echarts.echarts_script", lambda: None)
    plotted = Report("Lag", {}, (Lines("Behind", "messages", {"a": [(0, 1.0)]}),))
    pipeline_report.write(plotted, tmp_path / "lag.html")
    assert "pip install 'sprocketmq[reports]'" in capsys.readouterr().err
    assert "<td>1970-01-01 00:00:00</td>" in (tmp_path / "lag.html").read_text()
    pipeline_report.write(Report("Lag", {"rows": 1}), tmp_path / "lag.html")
    assert capsys.readouterr().err == ""


def test_a_long_table_is_cut_on_a_console(capsys: pytest.CaptureFixture[str]) -> None:
    table = Table("Groups", ("group", "lag"), [(f"g{number}", number) for number in range(50)])
    pipeline_report.show(Report("Lag", {"rows": 50, "topics": 1}, (table,)))
    shown = capsys.readouterr().out
    assert "rows    50\ntopics  1\n" in shown
    assert "g39" in shown
    assert "g40" not in shown
    assert "and 10 more" in shown
