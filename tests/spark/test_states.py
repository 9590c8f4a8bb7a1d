"""The programs of the guide page on streams with a state run, and print what stands there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from sprocket.testing.node_thread import NodeThread

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "spark-state.md"
PROGRAM = re.compile(
    r"^```python no-run\n(.*?)^```\n(?:\n```text\n(.*?)^```$)?", re.DOTALL | re.MULTILINE
)


@pytest.mark.spark
@pytest.mark.timeout(900)
def test_the_programs_print_what_stands_there(
    spark: SparkSession, own_rocketmq: NodeThread, capsys: pytest.CaptureFixture[str]
) -> None:
    programs = PROGRAM.findall(PAGE.read_text())
    assert len(programs) == 4
    names: dict[str, Any] = {}
    for number, (program, printed) in enumerate(programs):
        exec(compile(program, f"program {number}", "exec"), names)
        assert capsys.readouterr().out.strip() == printed.strip()
