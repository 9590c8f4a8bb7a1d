"""The list of topics: search, create. It asks for one page of topics at a time."""

from __future__ import annotations

import asyncio
from typing import Any

from nicegui import ui

from sprocket.base.errors import SprocketError
from sprocket.console.views.units import count_text
from sprocket.console.web.changing import ChangeOffer, change_button
from sprocket.console.web.listing import SearchedList
from sprocket.console.web.parts import TableColumn
from sprocket.console.web.visits import ConsolePage, PageVisit, link_to

_COLUMNS = (
    TableColumn("topic", "Topic"),
    TableColumn("queues", "Queues", is_number=True),
    TableColumn("permission", "Permission", is_minor=True),
    TableColumn("brokers", "Brokers", is_minor=True),
)
TOPIC_PATH = "/topic"
#: Topics that are asked about at the same time.
_AT_ONCE = 10


async def build(visit: PageVisit) -> None:
    """Shows topics by name, a page at a time."""
    listing = SearchedList(
        visit, _COLUMNS, key="topic", load=lambda given: _loaded(visit, given),
        nothing=("No topic has this name", "Create one, or search for a part of another name."),
    )  # fmt: skip
    with ui.row().classes("bar"):
        listing.search_field("Search topics")
        listing.switch("internal", "Also RocketMQ's own")
        change_button(
            visit,
            ChangeOffer(
                "topics.create", "Create a topic",
                asked=("topic", "queues", "permission", "attributes", "cluster", "broker"),
                first={"queues": 8, "permission": "rw"},
            ),
            "add",
        )  # fmt: skip
    await listing.show()


async def _loaded(visit: PageVisit, given: dict[str, Any]) -> tuple[list[dict[str, Any]], Any]:
    page = await visit.ask("topics.list", **given)
    turns = asyncio.Semaphore(_AT_ONCE)

    async def row(name: str) -> dict[str, Any]:
        found: dict[str, Any] = {"topic": name, "topic_link": link_to(TOPIC_PATH, name=name)}
        async with turns:
            try:
                parts = (await visit.ask("topics.describe", topic=name)).brokers
            except SprocketError as error:
                return found | {"permission": str(error)[:60], "permission_look": "bad"}
        queues = sum(part.read_queues for part in parts)
        return found | {
            "queues": queues,
            "queues_text": count_text(queues),
            "permission": ", ".join(sorted({part.permission for part in parts})),
            "brokers": ", ".join(sorted(part.broker for part in parts)),
        }

    return list(await asyncio.gather(*(row(each.topic) for each in page.items))), page


PAGE = ConsolePage("/topics", "Topics", "topic", build)
