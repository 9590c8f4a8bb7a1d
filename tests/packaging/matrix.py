"""`python -m tests.packaging.matrix`: the last commit, built and installed on every Python here.

The source archive is built from a clone, the wheel from the archive. Each is installed into an
empty environment of each Python that `pyproject.toml` names and this machine has; there a server
is started, and a message is sent and consumed. Packages are fetched from the package index. The
exit code is 1 if something failed or there is none of these Pythons.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path

from tests.packaging.distributions import ROOT, alone, build, clone, run

#: Sends a message to a broker of its own and consumes it, as a program of a user would.
_PROGRAM = """
import asyncio, sprocket, sys

async def main():
    async with sprocket.Standalone(store=None) as node:
        servers = node.nameserver_address
        async with sprocket.Producer("shop", nameservers=servers) as producer:
            await producer.send(sprocket.Message("orders", b"one coffee"))
        got = asyncio.get_running_loop().create_future()
        consumer = sprocket.PushConsumer("billing", nameservers=servers, start="first")

        @consumer.on("orders")
        async def bill(message):
            got.set_result(message.body)

        async with consumer:
            async with asyncio.timeout(60):
                assert await got == b"one coffee"

asyncio.run(main())
print("sent and consumed on", sys.version.split()[0], "with", sprocket.__version__)
"""


def pythons() -> Iterator[tuple[str, str | None]]:
    """Each version that the project names, with the path of its Python, or None."""
    classifiers = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["classifiers"]
    for line in classifiers:
        if named := re.fullmatch(r"Programming Language :: Python :: (3\.\d+)", line):
            yield named[1], _found(named[1])


def _found(version: str) -> str | None:
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    for each in (shutil.which(f"python{version}"), *root.glob(f"versions/{version}.*/bin/python")):
        if each is not None:
            asked = subprocess.run(
                [each, "-c", "import sys, venv; print('%d.%d' % sys.version_info[:2])"],
                capture_output=True, text=True, env=alone(),
            )  # fmt: skip
            if asked.stdout.strip() == version:
                return str(each)
    return None


def installs(python: str, package: Path, place: Path) -> str:
    """Installs a package into an empty environment and uses it; returns what the program prints."""
    run(python, "-m", "venv", str(place))
    own = str(place / "bin" / "python")
    # Nothing may be compiled: whoever installs it may have no compiler.
    run(
        own, "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
        "--only-binary=:all:", f"--no-binary={package.name.partition('-')[0]}", str(package),
    )  # fmt: skip
    run(str(place / "bin" / "sprocket"), "--version", cwd=place)
    return run(own, "-W", "error::DeprecationWarning", "-c", _PROGRAM, cwd=place).strip()


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> int:
    """Runs it; returns the exit code."""
    parser = argparse.ArgumentParser(prog="make dist", description=__doc__)
    parser.add_argument("--only-build", action="store_true", help="Install nothing.")
    given = parser.parse_args()
    done = failed = 0
    with tempfile.TemporaryDirectory(prefix="sprocket-dist-") as name:
        folder = Path(name)
        packages = build(clone(folder / "tree"), folder)
        into = ROOT / "dist"
        into.mkdir(exist_ok=True)
        for package in packages:
            _say(str(shutil.copy(package, into)))
        if given.only_build:
            return 0
        for version, python in pythons():
            if python is None:
                _say(f"Python {version}: not on this machine")
                continue
            for package in packages:
                try:
                    said = installs(python, package, folder / f"{version}-{package.suffix[1:]}")
                except AssertionError as error:
                    failed += 1
                    said = f"FAILED: {error}"
                done += 1
                _say(f"Python {version}, {package.name}: {said}")
    return 1 if failed or not done else 0


if __name__ == "__main__":
    sys.exit(main())
