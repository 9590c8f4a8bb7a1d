"""Builds the source archive of a tree, and the wheel from that archive."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent


def clone(folder: Path) -> Path:
    """The last commit in a folder of its own, which does not exist yet."""
    run("git", "clone", "--quiet", "--no-hardlinks", "--depth=1", ROOT.as_uri(), str(folder))
    return folder


def build(tree: Path, into: Path) -> tuple[Path, Path]:
    """The source archive of a tree, and the wheel that is built from this archive."""
    _hatch(tree, into, "sdist")
    archive = next(into.glob("*.tar.gz"))
    unpacked = into / "unpacked"
    with tarfile.open(archive) as file:
        file.extractall(unpacked, filter="data")
    _hatch(next(unpacked.iterdir()), into, "wheel")
    return archive, next(into.glob("*.whl"))


def _hatch(tree: Path, into: Path, target: str) -> None:
    run(
        sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(into),
        cwd=tree, env=dict(os.environ),
    )  # fmt: skip


def run(
    *command: str, cwd: Path | None = None, env: dict[str, str] | None = None, seconds: float = 600
) -> str:
    """What a command prints.

    Args:
        command: the program and its arguments.
        cwd: where it runs; None: here.
        env: its environment; None: one in which Python sees nothing but what is installed.
        seconds: the most that it may take.

    Raises:
        AssertionError: it failed; the text has what it wrote.
    """
    done = subprocess.run(
        command, cwd=cwd, env=env or alone(), capture_output=True, text=True, timeout=seconds
    )
    assert done.returncode == 0, f"{command} ended with {done.returncode}:\n{done.stderr[-4000:]}"
    return done.stdout


def alone() -> dict[str, str]:
    """This environment without what leads Python to other packages or the command to settings."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYTHON", "VIRTUAL_ENV", "SPROCKET_", "NAMESRV_ADDR"))
    }
