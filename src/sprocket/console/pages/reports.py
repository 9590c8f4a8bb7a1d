"""Reports of Spark pipelines: the files of a folder."""

from __future__ import annotations

from sprocket.base.errors import UsageError
from sprocket.console.views.units import ago_text, size_text
from sprocket.console.web.parts import TableColumn, empty, panel, table
from sprocket.console.web.report_routes import REPORT_PATH, reports_in
from sprocket.console.web.visits import ConsolePage, PageVisit, link_to

_COLUMNS = (
    TableColumn("name", "Report", is_wide=True),
    TableColumn("changed", "Written"),
    TableColumn("size", "Size", is_number=True),
)


async def build(visit: PageVisit) -> None:
    """Shows the reports of the folder of `--reports`."""
    folder = visit.desk.settings.reports
    if folder is None:
        empty(
            "No folder of reports is known",
            "Pipelines write reports with --report; then: sprocket console --reports FOLDER",
        )
        return
    try:
        found = reports_in(folder)
    except OSError as error:
        raise UsageError(f"--reports {folder}: {error.strerror}") from None
    if not found:
        empty(
            "The folder has no reports", f"Have a pipeline write one: --report {folder}/NAME.html"
        )
        return
    rows = [
        {
            "name": each.name,
            "name_link": link_to(REPORT_PATH, name=each.name),
            "changed": each.changed.timestamp(),
            "changed_text": ago_text(each.changed, visit.now_ms()),
            "size": each.size,
            "size_text": size_text(each.size),
        }
        for each in found
    ]
    with panel():
        table(_COLUMNS, rows, key="name")


PAGE = ConsolePage("/reports", "Pipelines", "insights", build)
