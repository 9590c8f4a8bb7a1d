"""Settings in force at brokers: search, change, and those in which brokers differ."""

from __future__ import annotations

from typing import Any

from nicegui import ui

from sprocket.console.views.settings import difference_rows, setting_rows
from sprocket.console.web.changing import ChangeOffer, change_button
from sprocket.console.web.listing import SearchedList
from sprocket.console.web.parts import TableColumn, panel, table
from sprocket.console.web.visits import ConsolePage, PageVisit

_COLUMNS = (
    TableColumn("setting", "Setting", is_wide=True),
    TableColumn("broker", "Broker"),
    TableColumn("value", "Value", is_code=True, is_wide=True),
)


async def build(visit: PageVisit) -> None:
    """Shows differences first, then all settings."""
    found = await visit.ask("settings.differences")
    with panel("What differs between brokers"):
        if len(found.brokers) < 2:
            ui.label("There is only one broker.").classes("quiet")
        elif not found.differences:
            ui.label("Nothing: all brokers have the same settings.").classes("quiet")
        else:
            columns = (
                TableColumn("setting", "Setting", is_wide=True),
                *(
                    TableColumn(f"broker{number}", broker, is_code=True, is_wide=True)
                    for number, broker in enumerate(found.brokers)
                ),
            )
            table(columns, difference_rows(found), key="setting")
    listing = SearchedList(
        visit, _COLUMNS, key="id", load=lambda given: _loaded(visit, given),
        nothing=("No setting has this name", "Search for a part of another name."),
    )  # fmt: skip
    with ui.row().classes("bar"):
        listing.search_field("Search settings")
        change_button(
            visit,
            ChangeOffer(
                "settings.change", "Change settings", asked=("settings", "broker", "cluster")
            ),
            "tune",
        )
    await listing.show()


async def _loaded(visit: PageVisit, given: dict[str, Any]) -> tuple[list[dict[str, Any]], Any]:
    page = await visit.ask("settings.list", **given)
    return setting_rows(page.items), page


PAGE = ConsolePage("/settings", "Settings", "settings", build)
