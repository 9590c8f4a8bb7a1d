"""The site has all pages, each once, and no link of theirs leads nowhere: `make docs` builds it."""

from __future__ import annotations

import importlib.util
import os
import posixpath
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from tests.packaging.distributions import ROOT


def _loaded() -> ModuleType:
    path = ROOT / "docs" / "site" / "pages.py"
    spec = importlib.util.spec_from_file_location("site_pages", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


pages = _loaded()


def listed(entry: object) -> Iterator[str]:
    if isinstance(entry, str):
        yield entry
    elif isinstance(entry, dict):
        for each in entry.values():
            yield from listed(each)
    elif isinstance(entry, list):
        for each in entry:
            yield from listed(each)


def texts() -> dict[str, str]:
    made = [*pages.repository_pages(), *pages.lists(), *pages.api_pages()]
    found = {page.path: page.text for page in made}
    assert len(found) == len(made)
    return found


def test_every_page_is_listed_once() -> None:
    names = list(listed(pages.navigation()))
    assert len(names) == len(set(names))
    assert set(names) == set(texts())


def test_links_lead_to_pages_of_the_site() -> None:
    known = texts()
    wrong = []
    for path, text in known.items():
        for target in re.findall(
            r"\]\(([^)#\s]+)", re.sub(r"```.*?```", "", text, flags=re.DOTALL)
        ):
            there = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
            is_file = there.startswith(("grafana/", "images/"))
            is_there = is_file and (pages.ROOT / "docs" / there).is_file()
            if "://" not in target and there not in known and not is_there:
                wrong.append(f"{path} -> {target}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[`a`](src/sprocket/cli/main.py)", "`a`"),
        ("[formats](docs/formats)", "[formats](formats/index.md)"),
        ("[a](docs/flows/send.md#b)", "[a](flows/send.md#b)"),
        ("[a](https://example.org/b)", "[a](https://example.org/b)"),
        ("[a](#b)", "[a](#b)"),
        ("[a](docs/grafana/sprocket.json)", "[a](grafana/sprocket.json)"),
        ("```python no-run\n[a](src/b.py)\n```\n", "```python\n[a](src/b.py)\n```\n"),
    ],
)
def test_a_link_is_as_the_site_needs_it(text: str, expected: str) -> None:
    assert pages.rewritten(text, "README.md", pages.sources()) == expected


def test_names_with_docstrings_exist() -> None:
    for text in texts().values():
        for name in re.findall(r"^::: (\S+)$", text, re.MULTILINE):
            path = ROOT / "src" / (name.replace(".", "/") + ".py")
            owner = ROOT / "src" / (name.rpartition(".")[0].replace(".", "/") + ".py")
            assert path.exists() or re.search(
                rf"^(class|(async )?def) {name.rpartition('.')[2]}\b",
                owner.read_text(),
                re.MULTILINE,
            ), name


@pytest.mark.skipif(
    "SPROCKET_LONG" not in os.environ, reason="takes half a minute: SPROCKET_LONG=1"
)
@pytest.mark.skipif(
    importlib.util.find_spec("zensical") is None,
    reason="Zensical is not installed: it is in the extra docs",
)
def test_it_is_built_strictly_and_fetches_nothing(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "docs/site/build.py", "--to", str(tmp_path / "site"), "--no-diagrams"],
        cwd=ROOT, capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "site" / "api" / "sprocket.html").exists()
