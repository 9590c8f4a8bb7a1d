"""`python docs/site/build.py`: builds the site of the documentation into `site/`.

It copies the repository's pages with links as the site needs them, adds pages of docstrings, and
runs Zensical, which checks all links and anchors: with one that leads nowhere the exit code is 1.
So it is with anything in the finished pages that a browser would fetch from elsewhere. Diagrams
need the package `mermaid`, which comes by npm; without npm they are shown as text.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import pages

MERMAID = "mermaid@11"
_SCRIPT = "assets/mermaid.js"
#: What makes a browser fetch something; a link that somebody clicks does not.
_FETCHED = re.compile(
    r"""<(?:script|img|iframe|source)\b[^>]*?\bsrc=["']?(?:https?:)?//[^"'\s>]+"""
    r"""|<link\b(?![^>]*rel=["']?canonical)[^>]*?\bhref=["']?(?:https?:)?//[^"'\s>]+"""
    r"""|url\(["']?(?:https?:)?//[^)]+"""
)


def stage(folder: Path) -> None:
    """Writes all pages into a folder."""
    for page in (*pages.repository_pages(), *pages.lists(), *pages.api_pages()):
        path = folder / page.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(page.text)
    for name in ("grafana", "images"):
        shutil.copytree(pages.ROOT / "docs" / name, folder / name)


def fetch_mermaid(folder: Path) -> bool:
    """Gets the script that draws diagrams; returns whether it is there."""
    if shutil.which("npm") is None:
        return False
    with tempfile.TemporaryDirectory() as name:
        done = subprocess.run(
            ["npm", "pack", "--silent", MERMAID], cwd=name, capture_output=True, text=True
        )
        if done.returncode:
            sys.stderr.write(f"diagrams stay text: {done.stderr[-300:]}\n")
            return False
        with tarfile.open(next(Path(name).glob("*.tgz"))) as archive:
            script = archive.extractfile("package/dist/mermaid.min.js")
            assert script is not None
            (folder / _SCRIPT).parent.mkdir(parents=True, exist_ok=True)
            (folder / _SCRIPT).write_bytes(script.read())
    return True


def settings(*, has_diagrams: bool) -> str:
    """The settings of one build."""
    text = (Path(__file__).parent / "zensical.toml").read_text()
    added = [
        'docs_dir = "docs"',
        'site_dir = "site"',
        f"nav = {_toml(pages.navigation())}",
    ]
    if has_diagrams:
        added.append(f'extra_javascript = ["{_SCRIPT}"]')
    else:
        text = text.replace('name = "mermaid", class = "mermaid"', 'name = "-", class = "-"')
    text = text.replace("[project]\n", "\n".join(["[project]", *added, ""]), 1)
    source = json.dumps(str(pages.ROOT / "src"))
    return text.replace(
        "[project.plugins.mkdocstrings.handlers.python.options]",
        f"[project.plugins.mkdocstrings.handlers.python]\npaths = [{source}]\n\n"
        "[project.plugins.mkdocstrings.handlers.python.options]",
    )


def _toml(value: object) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(k)} = {_toml(v)}" for k, v in value.items()) + " }"
    return json.dumps(value)


def fetched_from_elsewhere(site: Path) -> list[str]:
    """What browsers would fetch from other machines, with the pages that want it."""
    return [
        f"{page.relative_to(site)}: {found}"
        for page in sorted([*site.rglob("*.html"), *site.rglob("*.css")])
        for found in _FETCHED.findall(page.read_text(errors="replace"))
    ]


def main() -> int:
    """Builds the site; returns the exit code."""
    parser = argparse.ArgumentParser(prog="make docs", description=__doc__)
    parser.add_argument("--to", type=Path, default=pages.ROOT / "site", help="Folder of the site.")
    parser.add_argument("--no-diagrams", action="store_true", help="Fetch nothing by npm.")
    given = parser.parse_args()
    site = given.to.resolve()
    with tempfile.TemporaryDirectory(prefix="sprocket-docs-") as name:
        place = Path(name)
        (place / "docs").mkdir()
        stage(place / "docs")
        has_diagrams = not given.no_diagrams and fetch_mermaid(place / "docs")
        (place / "zensical.toml").write_text(settings(has_diagrams=has_diagrams))
        built = subprocess.run(
            [sys.executable, "-m", "zensical", "build", "--clean", "--strict"], cwd=place
        )
        if built.returncode:
            return 1
        shutil.rmtree(site, ignore_errors=True)
        shutil.copytree(place / "site", site)
    for each in (wrong := fetched_from_elsewhere(site)):
        sys.stderr.write(f"it is fetched from elsewhere: {each}\n")
    sys.stdout.write(f"the site is in {site}\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
