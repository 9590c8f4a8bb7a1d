"""Which pages the site has, and what of the repository's pages must be changed for it.

The repository's pages are written to be read there: they link sources and tests, and folders. In
the site a link to a file that is no page becomes its text, and one to a folder leads to a list of
its pages.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent.parent

#: Pages of the guide, by the headings under which the site lists them; others come at the end.
GUIDE: Mapping[str, tuple[str, ...]] = {
    "Messages": ("sending", "topics", "delays", "transactions", "filters", "lite",
                 "schemas"),
    "Consumers": ("consuming", "pop", "ordering", "retries", "offsets", "grpc", "tracing"),
    "Applications": ("web", "faststream", "airflow", "task-queues", "testing"),
    "Spark": ("spark", "spark-state", "pipelines", "lakehouse", "change-data"),
    "Running brokers": (
        "deploying", "durability", "replication", "failover", "backups", "upgrading", "operating",
        "live-settings", "console", "metrics", "limits", "processes", "scale", "mqadmin", "api",
    ),
    "Closed doors": ("security", "closed-servers", "tls"),
    "Moving and versions": ("migrating", "versions", "platforms"),
}  # fmt: skip
#: Folders of which every page is listed, with their heading and what the list says first.
FOLDERS: Mapping[str, tuple[str, str]] = {
    "flows": ("Flows", "How something gets from one end to the other, step by step."),
    "formats": ("Formats", "Bytes of files and of the wire."),
    "decisions": ("Decisions", "What was decided, why, and its price."),
}
#: Pages at the root of the repository.
TOP: Mapping[str, str] = {
    "Architecture": "ARCHITECTURE.md",
    "Contributing": "CONTRIBUTING.md",
    "Style": "STYLE.md",
    "Glossary": "GLOSSARY.md",
    "Security": "SECURITY.md",
    "Changelog": "CHANGELOG.md",
}
#: Pages of the interface in Python: file, heading, first line, and the modules or names whose
#: docstrings it has.
API: Mapping[str, tuple[str, str, tuple[str, ...]]] = {
    "api/sprocket.md": (
        "sprocket",
        "The names of the package itself; `sprocket config reference` lists all settings.",
        (),
    ),
    "api/blocking.md": (
        "Without an event loop", "The same clients, for programs that do not use asyncio.",
        ("sprocket.client.blocking",),
    ),
    "api/spark.md": (
        "Spark", "Sessions and pipelines; the options of the data source are in "
        "[Topics and Spark](../guide/spark.md).",
        ("sprocket.spark.launching.launch.session", "sprocket.spark.pipelines.archive",
         "sprocket.spark.pipelines.replay", "sprocket.spark.pipelines.deadletters",
         "sprocket.spark.pipelines.lag", "sprocket.spark.pipelines.volume",
         "sprocket.spark.pipelines.trace", "sprocket.spark.pipelines.mirror"),
    ),
    "api/admin.md": ("Operating", "The operations of `sprocket topic`, `group` and others.", ()),
    "api/errors.md": ("Errors", "One tree.", ("sprocket.base.errors",)),
}  # fmt: skip

_FENCE = re.compile(r"(^```.*?^```\s*$)", re.DOTALL | re.MULTILINE)
_WORDS = re.compile(r"^```(\w+) .*$", re.MULTILINE)
_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")


class SitePage(NamedTuple):
    """A page of the site.

    Attributes:
        path: below the site's root.
        text: Markdown.
    """

    path: str
    text: str


def sources() -> dict[str, str]:
    """The repository's pages, by their path in it: their path in the site."""
    found = {"README.md": "index.md", **{name: name for name in TOP.values()}}
    for page in sorted((ROOT / "docs").rglob("*.md")):
        name = page.relative_to(ROOT).as_posix()
        found[name] = name.removeprefix("docs/")
    return found


def repository_pages() -> Iterator[SitePage]:
    """All pages of the repository as the site has them."""
    known = sources()
    for name, path in known.items():
        yield SitePage(path, rewritten((ROOT / name).read_text(), name, known))


def rewritten(text: str, name: str, known: Mapping[str, str]) -> str:
    """A page's text with the links of the site.

    Args:
        name: the page's path in the repository.
        known: the pages of the site, as `sources` gives them.
    """
    parts = _FENCE.split(text)
    here = posixpath.dirname(known[name])

    def link(found: re.Match[str]) -> str:
        mark, label, target = found.groups()
        place, hash_mark, anchor = target.partition("#")
        if "://" in target or not place:
            return found[0]
        there = posixpath.normpath(posixpath.join(posixpath.dirname(name), place))
        path = known.get(there)
        if path is None and there.removeprefix("docs/") in FOLDERS:
            path = f"{there.removeprefix('docs/')}/index.md"
        if path is None and (ROOT / there).is_file() and there.startswith("docs/"):
            path = there.removeprefix("docs/")
        if path is None:
            return str(label)
        return f"{mark}[{label}]({posixpath.relpath(path, here or '.')}{hash_mark}{anchor})"

    # Words behind the language are for our tests; the site would not know the fence by its first
    # line with them.
    return "".join(
        _WORDS.sub(r"```\1", part) if at % 2 else _LINK.sub(link, part)
        for at, part in enumerate(parts)
    )


def title_of(text: str) -> str:
    """The heading of a page."""
    return next(line for line in text.splitlines() if line.startswith("# "))[2:]


def lists() -> Iterator[SitePage]:
    """The pages that list the pages of a folder."""
    for folder, (heading, line) in FOLDERS.items():
        rows = [
            f"- [{title_of(page.read_text())}]({page.name})"
            for page in sorted((ROOT / "docs" / folder).glob("*.md"))
        ]
        yield SitePage(f"{folder}/index.md", "\n".join([f"# {heading}\n", line + "\n", *rows, ""]))


def api_pages() -> Iterator[SitePage]:
    """The pages with docstrings."""
    for path, (heading, line, modules) in API.items():
        names = modules
        if path == "api/sprocket.md":
            names = tuple(public_names())
        elif path == "api/admin.md":
            names = tuple(admin_modules())
        blocks = [_block(name) for name in names]
        yield SitePage(path, "\n".join([f"# {heading}\n", line + "\n", *blocks]))


def _block(name: str) -> str:
    """What asks for the docstrings of a name; fields of settings are in their own reference."""
    if not name.endswith("Config"):
        return f"::: {name}\n"
    return f"::: {name}\n    options:\n      members: false\n      show_signature: false\n"


def public_names() -> Iterator[str]:
    """Where each public name is defined; errors have a page of their own."""
    import sprocket

    for name in sprocket.__all__:
        module = getattr(sprocket, name).__module__
        if module != "sprocket.base.errors":
            yield f"{module}.{name}"


def admin_modules() -> Iterator[str]:
    """The modules of `sprocket.admin`."""
    for path in sorted((ROOT / "src" / "sprocket" / "admin").glob("*.py")):
        if path.stem != "__init__":
            yield f"sprocket.admin.{path.stem}"


def _names(folder: str) -> set[str]:
    return {page.stem for page in (ROOT / "docs" / folder).glob("*.md")}


def navigation() -> list[object]:
    """The site's list of pages, as `nav` has it."""
    named = [{heading: [f"guide/{name}.md" for name in names]} for heading, names in GUIDE.items()]
    others = sorted(_names("guide") - {name for names in GUIDE.values() for name in names})
    more = [{"More": [f"guide/{name}.md" for name in others]}] if others else []
    folders = [
        {heading: [f"{folder}/{name}.md" for name in ["index", *sorted(_names(folder))]]}
        for folder, (heading, _) in FOLDERS.items()
    ]
    inside = [{heading: name} for heading, name in TOP.items() if heading != "Changelog"]
    return [
        {"Sprocket": "index.md"},
        *named,
        *more,
        {"In Python": [{heading: path} for path, (heading, _, _) in API.items()]},
        {"Inside": [*inside, *folders]},
        {"Changelog": TOP["Changelog"]},
    ]
