"""The guide's program about filters does what the guide says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from sprocket.filter import sql92, sql92_code, sql92_grammar, sql92_terms

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "guide" / "filters.md").read_text()


@pytest.mark.process
def test_the_program_of_the_guide_prints_what_stands_there() -> None:
    (program,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    (printed,) = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == printed


def test_the_pages_know_the_limits() -> None:
    decision = (DOCS / "decisions" / "0003-sql92-filters.md").read_text()
    limits = (sql92.TEXT_MAX, sql92_code.CONDITIONS_MAX, sql92_terms.DEPTH_MAX)
    for limit in limits:
        assert f" {limit:,} " in PAGE
        assert f" {limit:,} " in decision
    assert f" {sql92_grammar.TOKENS_MAX:,} " in decision
