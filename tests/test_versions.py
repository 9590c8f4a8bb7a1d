"""The changelog and the version have the form that the page on versions describes."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import sprocket

ROOT = Path(__file__).resolve().parent.parent
CHANGELOG = (ROOT / "CHANGELOG.md").read_text()
#: The kinds of changes that Keep a Changelog knows.
KINDS = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def releases() -> list[tuple[str, str]]:
    """Each release with its date, newest first; *Unreleased* is not one."""
    return re.findall(r"^## \[(\d+\.\d+\.\d+)\] - (\d{4}-\d{2}-\d{2})$", CHANGELOG, re.MULTILINE)


def test_a_version_is_the_same_wherever_it_stands() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert sprocket.__version__ == declared
    assert re.fullmatch(r"\d+\.\d+\.\d+", declared), "semantic, and no other form"


def test_the_changelog_names_the_version_that_is_to_come_or_has_come() -> None:
    known = [version for version, _ in releases()]
    unreleased = CHANGELOG.partition("## [Unreleased]")[2].partition("\n## [")[0]
    assert sprocket.__version__ in known or sprocket.__version__ in unreleased


def test_the_changelog_is_in_order_and_has_only_known_kinds() -> None:
    headings = re.findall(r"^## (.+)$", CHANGELOG, re.MULTILINE)
    assert headings[0] == "[Unreleased]"
    assert len(headings) == len(releases()) + 1, "## [1.2.3] - 2030-01-31"
    versions = [tuple(map(int, version.split("."))) for version, _ in releases()]
    assert versions == sorted(versions, reverse=True)
    assert [date for _, date in releases()] == sorted((d for _, d in releases()), reverse=True)
    assert set(re.findall(r"^### (.+)$", CHANGELOG, re.MULTILINE)) <= KINDS
