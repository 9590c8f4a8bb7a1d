"""One topic: its queues, volume and settings; change, delete, send a test message."""

from __future__ import annotations

from nicegui import ui

from sprocket.console.pages.topics import TOPIC_PATH
from sprocket.console.views.topics import queue_rows, setting_rows, volume_rows
from sprocket.console.views.units import count_text, counted, rate_text
from sprocket.console.web.changing import ChangeOffer, change_button
from sprocket.console.web.parts import TableColumn, empty, panel, table, tile
from sprocket.console.web.visits import ConsolePage, PageVisit, link_to

_QUEUES = (
    TableColumn("broker", "Broker"),
    TableColumn("queue", "Queue", is_number=True),
    TableColumn("first", "First offset", is_number=True, is_minor=True),
    TableColumn("next", "Next offset", is_number=True, is_minor=True),
    TableColumn("messages", "Messages", is_number=True),
    TableColumn("last", "Last message"),
)
_SETTINGS = (
    TableColumn("broker", "Broker"),
    TableColumn("read", "Read queues", is_number=True),
    TableColumn("write", "Write queues", is_number=True),
    TableColumn("permission", "Permission"),
    TableColumn("attributes", "Attributes", is_wide=True),
)
_VOLUMES = (
    TableColumn("who", "Group"),
    TableColumn("rate", "Rate", is_number=True),
    TableColumn("minute", "Last minute", is_number=True, is_minor=True),
    TableColumn("hour", "Last hour", is_number=True),
    TableColumn("day", "Last day", is_number=True),
)
_QUEUES_MAX = 1_000


async def build(visit: PageVisit) -> None:
    """Shows the topic that the address names."""
    name = visit["name"]
    if not name:
        empty("No topic is chosen", "Choose one in the list of topics.")
        return
    topic = await visit.ask("topics.describe", topic=name)
    queues = await visit.ask("topics.queues", topic=name, limit=_QUEUES_MAX)
    volume = await visit.ask("topics.volume", topic=name)
    ui.label(name).classes("panel-title").style("overflow-wrap: anywhere; font-size: 16px")
    _buttons(visit, name)
    with ui.element("div").classes("tiles"):
        messages = sum(each.max_offset - each.min_offset for each in queues.items)
        tile("Messages", count_text(messages), "stored now")
        tile("Rate", rate_text(volume.volumes[0].per_second), "over the last minute")
        tile(
            "Queues",
            count_text(queues.total or 0),
            "on " + counted(len(topic.brokers), "broker", "brokers"),
        )
        tile("Groups", count_text(len(topic.groups)), ", ".join(topic.groups[:3]))
    with panel("Queues"):
        table(_QUEUES, queue_rows(queues.items, visit.now_ms()), key="id")
        if (queues.total or 0) > _QUEUES_MAX:
            ui.label(f"The first {_QUEUES_MAX} of {queues.total}.").classes("quiet small")
    with panel("Volume"):
        rows = volume_rows(volume)
        for row in rows:
            if row["id"]:
                row["who_link"] = link_to("/group", name=row["id"])
        table(_VOLUMES, rows, key="id")
    with panel("Settings"):
        table(_SETTINGS, setting_rows(topic), key="id")


def _buttons(visit: PageVisit, name: str) -> None:
    with ui.row().classes("bar"):
        ui.button(
            "Messages", icon="search", on_click=lambda: visit.open("/messages", topic=name)
        ).props("outline dense no-caps")
        change_button(
            visit,
            ChangeOffer(
                "messages.send", "Send a test message", about=f"to {name}",
                asked=("body", "tag", "keys", "properties"), fixed={"topic": name},
                first={"body": '{"test": true}'},
            ),
            "send",
        )  # fmt: skip
        change_button(
            visit,
            ChangeOffer(
                "topics.change", "Change", about=name,
                asked=("read_queues", "write_queues", "permission", "attributes", "broker",
                       "may_hide"),
                fixed={"topic": name},
            ),
            "tune",
        )  # fmt: skip
        change_button(
            visit,
            ChangeOffer(
                "topics.delete", "Delete", about=name, fixed={"topic": name}, leads_to="/topics"
            ),
            "delete",
        )


PAGE = ConsolePage(TOPIC_PATH, "Topic", None, build)
