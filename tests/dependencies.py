"""`python -m tests.dependencies`: what the package needs, as installed, and known holes in it.

It runs `pip-audit` over what the package and its extras bring, and not over the tools of its tests.
The exit code is 0 if all of them were looked up and none has a known hole, 1 if one has, and 3 if
some could not be looked up: a mirror of the package index may not have the data.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

PACKAGE = "sprocketmq"
#: Extras that only developers install.
TOOLS = frozenset({"dev", "deploy", "docs", "lake", "fuzz", "security"})


def needed() -> dict[str, str]:
    """The distributions that the package and its extras bring, with their installed versions."""
    found: dict[str, str] = {}
    for extra, name in requirements(PACKAGE):
        if extra not in TOOLS:
            _collect(name, found)
    return dict(sorted(found.items()))


def _collect(name: str, found: dict[str, str]) -> None:
    try:
        version = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return
    if name in found:
        return
    found[name] = version
    for extra, other in requirements(name):
        if not extra:
            _collect(other, found)


def requirements(name: str) -> Iterator[tuple[str, str]]:
    """What a distribution needs: the extra that wants it, or nothing, and its name."""
    for line in importlib.metadata.requires(name) or ():
        wanted = re.match(r"[\w.-]+", line)
        extra = re.search(r"extra\s*==\s*['\"]([\w-]+)['\"]", line)
        if wanted is not None:
            yield extra[1] if extra else "", wanted[0].lower().replace("_", "-")


def outcome(report: str) -> tuple[int, list[str]]:
    """The exit code, and what to say, for what `pip-audit` wrote as JSON."""
    said, code = [], 0
    for each in json.loads(report)["dependencies"]:
        if "skip_reason" in each:
            said.append(f"{each['name']}: not looked up: {each['skip_reason']}")
            code = code or 3
        for hole in each.get("vulns", ()):
            mended = ", ".join(hole["fix_versions"]) or "no version"
            said.append(f"{each['name']} {each['version']} has {hole['id']}; mended in {mended}")
            code = 1
    return code, said


def main() -> int:
    """Lists and asks."""
    found = needed()
    lines = [f"{name}=={version}" for name, version in found.items()]
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    if importlib.util.find_spec("pip_audit") is None:
        sys.stdout.write("pip-audit is missing: `pip install -e '.[security]'`\n")
        return 3
    with tempfile.TemporaryDirectory() as folder:
        wanted = Path(folder) / "requirements.txt"
        wanted.write_text("\n".join(lines))
        ran = subprocess.run(
            [
                sys.executable, "-m", "pip_audit", "-r", str(wanted), "--no-deps", "--disable-pip",
                "--format", "json", "--progress-spinner", "off",
            ],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    if not ran.stdout.lstrip().startswith("{"):
        sys.stdout.write(f"the package index cannot be asked: {ran.stderr[-500:]}\n")
        return 3
    code, said = outcome(ran.stdout)
    sys.stdout.write("".join(f"{line}\n" for line in said))
    sys.stdout.write(f"{len(found)} packages\n" if not code else "")
    return code


if __name__ == "__main__":
    sys.exit(main())
