"""How many files a process may have open."""

from __future__ import annotations

import subprocess
import sys

import pytest

from sprocket.runtime.disk import SystemDisk


@pytest.mark.skipif(sys.platform == "win32", reason="the limit is one of Unix")
def test_a_disk_knows_the_limit_of_its_process() -> None:
    asked = (
        "import resource; from sprocket.runtime.disk import SystemDisk\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (100, 200))\n"
        "print(SystemDisk().open_files_max)"
    )
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "100"
    assert SystemDisk().open_files_max > 0
