from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sprocket.spark.launching.interpreter import for_workers

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="it is a shell's script")

_SHOW = (
    "import os, sys; print(sys.executable, os.environ.get('PYTHONPATH'), *sys.argv[1:], sep='|')"
)


def shown(program: str, path: str) -> list[str]:
    """What runs, its PYTHONPATH and its arguments."""
    environment = {**os.environ, "PYTHONPATH": path}
    command = [program, "-c", _SHOW, "one two", "three"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return done.stdout.strip().split("|")


@pytest.mark.parametrize(
    ("given", "left"),
    [
        ("{zip}:/py4j.zip:/mine", "/py4j.zip:/mine"),
        ("/mine:{zip}", "/mine"),
        ("/a:{zip}:/b", "/a:/b"),
        ("{zip}", ""),
        ("{zip}:/py4j.zip:{zip}:/mine:{zip}", "/py4j.zip:/mine"),
        ("", ""),
        ("/mine:/elsewhere/pyspark.zip", "/mine:/elsewhere/pyspark.zip"),
    ],
)
def test_workers_run_this_interpreter_without_the_zipped_pyspark(
    tmp_path: Path, given: str, left: str
) -> None:
    pyspark = tmp_path / "it's here" / "pyspark"
    program = for_workers(pyspark, {"XDG_CACHE_HOME": str(tmp_path / "cache")})
    zipped = pyspark / "python" / "lib" / "pyspark.zip"
    expected = [sys.executable, left, "one two", "three"]
    assert shown(program, given.format(zip=zipped)) == expected
