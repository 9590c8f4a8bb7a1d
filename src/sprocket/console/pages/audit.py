"""Who changed what at the servers of this machine."""

from __future__ import annotations

from sprocket.console.views.access import audit_rows
from sprocket.console.web.parts import TableColumn, empty, panel, table
from sprocket.console.web.visits import ConsolePage, PageVisit

_COLUMNS = (
    TableColumn("time", "Time"),
    TableColumn("user", "User"),
    TableColumn("request", "Request"),
    TableColumn("result", "Result", is_wide=True),
    TableColumn("named", "About", is_code=True, is_wide=True),
    TableColumn("address", "From", is_code=True, is_minor=True),
    TableColumn("server", "At", is_minor=True),
)
_SHOWN_MAX = 500


async def build(visit: PageVisit) -> None:
    """Shows the newest entries."""
    if visit.desk.settings.audit_folder is None:
        empty(
            "No audit log is known here",
            "The log is on the machine of the servers: sprocket console --audit FOLDER",
        )
        return
    found = await visit.ask("audit.list", limit=_SHOWN_MAX)
    with panel():
        if found.entries:
            table(_COLUMNS, audit_rows(found.entries), key="id")
        else:
            empty("Nothing was changed yet", "Each change of an operator has a line here.")


PAGE = ConsolePage("/audit", "Audit", "history", build)
