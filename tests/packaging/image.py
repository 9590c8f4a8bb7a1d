"""`python -m tests.packaging.image`: builds the image, and runs a broker in it.

It uses docker if its daemon answers, else podman, else buildah. With `--python` another image than
the one that the file names is the base, for instance one that is made of Debian's packages where
no registry can be reached. What is listed behind `--` goes to the build, for instance volumes with
certificates.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence

from tests.packaging.distributions import ROOT, run

FILE = ROOT / "deploy" / "container" / "Dockerfile"
TAG = "sprocket"
#: Runs inside the image, as its user: a message goes through a broker whose health is asked for by
#: the image's own check.
_SCRIPT = r"""
set -e
test "$(id -u)" != 0
test -z "$(command -v gcc pip)"
sprocket --version
sprocket standalone --store /var/lib/sprocket/store --grpc-port off &
until python3 -c "$CHECK" 2>/dev/null; do sleep 1; kill -0 $!; done
sprocket send orders "one coffee"
sprocket consume orders --group billing --count 1
kill -TERM $!
wait $!
"""


def health_check() -> str:
    """The program of the image's own health check."""
    (found,) = re.findall(r'CMD \["python3", "-c", "(.*)"\]', FILE.read_text())
    return str(found)


def tool() -> str | None:
    """The program that builds images here, or None."""
    for name, question in (
        ("docker", ["info"]),
        ("podman", ["info"]),
        ("buildah", ["--version"]),
    ):
        if shutil.which(name):
            asked = subprocess.run([name, *question], capture_output=True)
            if asked.returncode == 0:
                return name
    return None


def build(name: str, base: str | None, more: Sequence[str]) -> None:
    """Builds the image.

    Raises:
        AssertionError: it cannot be built.
    """
    file = ["-f", str(FILE), "-t", TAG]
    argument = [] if base is None else ["--build-arg", f"PYTHON={base}"]
    # Only docker's own form of images has health checks.
    form = [] if name == "docker" else ["--format", "docker"]
    run(name, "build", *form, *argument, *more, *file, str(ROOT), seconds=1800)


def try_out(name: str) -> str:
    """Runs a broker in the image; returns what was printed.

    Raises:
        AssertionError: something does not work there.
    """
    words = ["sh", "-c", _SCRIPT]
    if name != "buildah":
        return run(
            name, "run", "--rm", "--init", "--read-only", "--tmpfs", "/tmp", "--cap-drop=ALL",
            "--env", f"CHECK={health_check()}", "--entrypoint", "", TAG, *words,
        )  # fmt: skip
    container = run("buildah", "from", f"localhost/{TAG}").strip()
    try:
        return run("buildah", "run", "--env", f"CHECK={health_check()}", container, "--", *words)
    finally:
        run("buildah", "rm", container)


def main() -> int:
    """Runs it; returns the exit code."""
    parser = argparse.ArgumentParser(prog="make image", description=__doc__)
    parser.add_argument("--python", metavar="IMAGE", help="The base, with Python 3.11 or later.")
    parser.add_argument("--only-build", action="store_true", help="Do not run it.")
    parser.add_argument("more", nargs="*", help="Arguments of the build.")
    given = parser.parse_args()
    name = tool()
    if name is None:
        sys.stderr.write("neither docker's daemon nor podman nor buildah is here\n")
        return 1
    build(name, given.python, given.more)
    sys.stdout.write(f"{name} has built the image {TAG}\n")
    if not given.only_build:
        sys.stdout.write(try_out(name))
    return 0


if __name__ == "__main__":
    sys.exit(main())
