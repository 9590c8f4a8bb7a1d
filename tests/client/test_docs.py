"""The guide's program does what the guide says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "guide" / "consuming.md").read_text()


@pytest.mark.process
def test_the_program_of_the_guide_prints_what_stands_there() -> None:
    program = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)[0]
    printed = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)[0]
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == printed
