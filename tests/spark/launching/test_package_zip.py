from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from sprocket.spark import package_zip

PROGRAM = """
import sys
sys.path.insert(0, sys.argv[1])
import sprocket, sprocket.filter.sql92, sprocket.base.config_files
sys.stdout.write(sprocket.__file__)
sprocket.base.config_files.rocketmq_settings()
"""


def test_the_package_works_from_the_archive(tmp_path: Path) -> None:
    archive = package_zip(tmp_path / "sprocket.zip")
    command = [sys.executable, "-c", PROGRAM, str(archive)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == str(archive / "sprocket" / "__init__.py")
