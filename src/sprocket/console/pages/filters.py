"""Filters in Python: which there are, what they have judged, why one is off; remove."""

from __future__ import annotations

from nicegui import ui

from sprocket.console.views.settings import filter_rows
from sprocket.console.web.changing import ChangeOffer, change_button
from sprocket.console.web.parts import TableColumn, empty, panel, table
from sprocket.console.web.visits import ConsolePage, PageVisit

_COLUMNS = (
    TableColumn("name", "Filter"),
    TableColumn("group", "Group"),
    TableColumn("topic", "Topic"),
    TableColumn("state", "State", is_wide=True),
    TableColumn("judged", "Judged", is_number=True),
    TableColumn("wanted", "Wanted", is_number=True),
    TableColumn("version", "Version", is_code=True, is_minor=True),
    TableColumn("uploaded", "Uploaded", is_minor=True),
    TableColumn("broker", "Broker", is_minor=True),
)


async def build(visit: PageVisit) -> None:
    """Shows all filters in Python."""
    found = (await visit.ask("filters.list")).filters
    with panel():
        if not found:
            empty(
                "There are no filters in Python",
                "A consumer brings its own, or: sprocket filter upload. Brokers take them when "
                "filter_workers is above 0.",
            )
            return
        with ui.row().classes("bar"):
            change_button(
                visit,
                ChangeOffer(
                    "filters.remove", "Remove a filter", asked=("group", "topic", "name", "version")
                ),
                "delete",
            )
        table(_COLUMNS, filter_rows(found, visit.now_ms()), key="id")


PAGE = ConsolePage("/filters", "Filters", "filter_alt", build)
