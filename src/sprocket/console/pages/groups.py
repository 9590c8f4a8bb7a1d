"""The list of consumer groups, with members and lag of the page that is shown."""

from __future__ import annotations

from typing import Any

from nicegui import ui

from sprocket.console.views.groups import group_row
from sprocket.console.web.changing import ChangeOffer, change_button
from sprocket.console.web.listing import SearchedList
from sprocket.console.web.parts import TableColumn
from sprocket.console.web.visits import ConsolePage, PageVisit, link_to

_COLUMNS = (
    TableColumn("group", "Group"),
    TableColumn("members", "Members online", is_number=True),
    TableColumn("lag", "Lag", is_number=True),
)
GROUP_PATH = "/group"


async def build(visit: PageVisit) -> None:
    """Shows groups by name, a page at a time."""
    listing = SearchedList(
        visit, _COLUMNS, key="group", load=lambda given: _loaded(visit, given),
        nothing=(
            "No group has this name",
            "A group appears when its first consumer starts, or when you create it.",
        ),
    )  # fmt: skip
    with ui.row().classes("bar"):
        listing.search_field("Search groups")
        listing.switch("internal", "Also RocketMQ's own")
        change_button(
            visit,
            ChangeOffer(
                "groups.create", "Create a group",
                asked=("group", "retry_max_times", "is_ordered", "cluster", "broker"),
            ),
            "add",
        )  # fmt: skip
    await listing.show()


async def _loaded(visit: PageVisit, given: dict[str, Any]) -> tuple[list[dict[str, Any]], Any]:
    page = await visit.ask("groups.list", status=True, **given)
    rows = [
        group_row(each) | {"group_link": link_to(GROUP_PATH, name=each.group)}
        for each in page.items
    ]
    return rows, page


PAGE = ConsolePage("/groups", "Groups", "groups", build)
