"""Reports of Spark pipelines: the files of a folder, each shown in a box of its own.

A report is a page that somebody else's job has written. It is served with a policy that gives it an
origin of its own and no way out: it reads no cookie, and loads and sends nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import FileResponse, PlainTextResponse, Response
from starlette.routing import Route

from sprocket.console.web.desk import ConsoleDesk

REPORT_PATH = "/report-file"
_POLICY = (
    "sandbox allow-scripts; default-src 'none'; style-src 'unsafe-inline'; "
    "script-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'"
)
#: Files that are listed, and how deep folders are searched.
_FILES_MAX, _DEPTH_MAX = 1_000, 3
_KINDS = {".html": "text/html; charset=utf-8", ".json": "application/json"}


class ReportFile(NamedTuple):
    """A report.

    Attributes:
        name: its path below the folder.
        changed: when it was written.
        size: in bytes.
    """

    name: str
    changed: datetime
    size: int


def reports_in(folder: Path) -> list[ReportFile]:
    """The reports of a folder and its folders, the newest first.

    Raises:
        OSError: the folder cannot be read.
    """
    found = []
    for path in _files(folder, _DEPTH_MAX):
        status = path.stat()
        changed = datetime.fromtimestamp(status.st_mtime, UTC)
        found.append(ReportFile(path.relative_to(folder).as_posix(), changed, status.st_size))
        if len(found) >= _FILES_MAX:
            break
    return sorted(found, key=lambda each: each.changed, reverse=True)


def _files(folder: Path, depth: int) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        if path.name.startswith(".") or path.is_symlink():
            continue
        if path.is_dir() and depth > 1:
            yield from _files(path, depth - 1)
        elif path.is_file() and path.suffix in _KINDS:
            yield path


class ReportRoutes:
    """Serves the files of reports to those who may see pages."""

    def __init__(self, desk: ConsoleDesk) -> None:
        self._desk = desk

    @property
    def routes(self) -> list[Route]:
        """The routes for an application."""
        return [Route(REPORT_PATH, self._show, methods=["GET"])]

    async def _show(self, request: Request) -> Response:
        folder = self._desk.settings.reports
        if await self._desk.session_of(request) is None:
            return PlainTextResponse("Log in first.\n", 401)
        name = request.query_params.get("name", "")
        path = None if folder is None else _inside(folder, name)
        if path is None:
            return PlainTextResponse("There is no such report.\n", 404)
        return FileResponse(
            path, media_type=_KINDS[path.suffix], headers={"content-security-policy": _POLICY}
        )


def _inside(folder: Path, name: str) -> Path | None:
    """The file of a name, if it is a report of this folder."""
    if not name or "\0" in name:
        return None
    root = folder.resolve()
    path = (root / name).resolve()
    if not path.is_relative_to(root) or path.suffix not in _KINDS or not path.is_file():
        return None
    return path
