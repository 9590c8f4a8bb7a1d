"""Builds the native kernel, once for all tests of a clone."""

from __future__ import annotations

import fcntl
import importlib.machinery
import shutil
import subprocess
from pathlib import Path

import pytest

_SOURCE = Path(__file__).parents[1] / "native"
_BUILD = ["cargo", "build", "--release", "--locked"]


def built() -> Path:
    """A folder with the kernel, to put on `sys.path`; the test is skipped if it cannot be built."""
    if shutil.which("cargo") is None:
        pytest.skip("the native kernel is built by cargo, which is not here")
    target = _SOURCE / "target" / "for-tests"
    target.mkdir(parents=True, exist_ok=True)
    with (target.parent / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        fetched = subprocess.run(
            ["cargo", "fetch", "--locked"], cwd=_SOURCE, capture_output=True, check=False
        )
        if fetched.returncode:
            pytest.skip("the native kernel needs crates, and no registry is reached")
        subprocess.run(_BUILD, cwd=_SOURCE, check=True, capture_output=True)
        suffix = importlib.machinery.EXTENSION_SUFFIXES[0]
        shutil.copy(target.parent / "release" / "libsprocket_native.so", target)
        (target / "libsprocket_native.so").replace(target / f"sprocket_native{suffix}")
    return target
