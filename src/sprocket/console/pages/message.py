"""One message: body in each form, properties, its copies, who consumed it; send again, download."""

from __future__ import annotations

import asyncio
from typing import Any

from nicegui import ui

from sprocket.base.errors import SprocketError
from sprocket.console.operations.message_facts import MessageFacts
from sprocket.console.views.bodies import body_forms, schema_form
from sprocket.console.views.consumed import consumed_rows
from sprocket.console.views.messages import (
    MESSAGE_PATH,
    body_of,
    file_name,
    message_facts,
    message_rows,
    property_rows,
)
from sprocket.console.web.changing import ChangeOffer, change_button
from sprocket.console.web.parts import TableColumn, body_text, empty, facts, panel, table
from sprocket.console.web.visits import ConsolePage, PageVisit, show_problem

_BODY_BYTES, _DOWNLOAD_BYTES = 262_144, 1 << 20
_PROPERTIES = (
    TableColumn("name", "Property", is_wide=True),
    TableColumn("value", "Value", is_code=True, is_wide=True),
)
_COPIES = (
    TableColumn("id", "Message"),
    TableColumn("topic", "Stored in"),
    TableColumn("stored", "Stored (UTC)"),
    TableColumn("tries", "Retries", is_number=True),
    TableColumn("place", "Queue", is_minor=True),
)
_CONSUMED = (
    TableColumn("group", "Group"),
    TableColumn("state", "This message"),
    TableColumn("committed", "Committed offset", is_number=True),
    TableColumn("behind", "Lag of the queue", is_number=True),
)
_GROUPS_MAX = 50


async def build(visit: PageVisit) -> None:
    """Shows the message that the address names by its offset id."""
    if not visit["id"]:
        empty("No message is chosen", "Search for one on the page of messages.")
        return
    found = await visit.ask("messages.get", id=visit["id"], body_bytes=_BODY_BYTES)
    message: MessageFacts = found.messages[0]
    _buttons(visit, message)
    with panel("Body"):
        await _body(visit, message)
    with panel("Facts"):
        facts(message_facts(message, visit.now_ms()))
    with panel("Properties"):
        if message.properties:
            table(_PROPERTIES, property_rows(message.properties), key="id", rows_per_page=None)
        else:
            ui.label("It has none.").classes("quiet")
    await _who_consumed(visit, message)
    await _copies(visit, message)


def _buttons(visit: PageVisit, message: MessageFacts) -> None:
    async def download() -> None:
        found = await visit.ask("messages.get", id=message.offset_id, body_bytes=_DOWNLOAD_BYTES)
        ui.download(body_of(found.messages[0]), file_name(message), "application/octet-stream")

    with ui.row().classes("bar"):
        ui.button("Download the body", icon="download", on_click=download).props(
            "outline dense no-caps"
        )
        change_button(
            visit,
            ChangeOffer(
                "messages.resend", "Send again", asked=("to",), fixed={"id": message.offset_id}
            ),
            "replay",
        )
        change_button(
            visit,
            ChangeOffer(
                "messages.consume", "Have a group consume it", asked=("group", "client"),
                fixed={"id": message.offset_id},
            ),
            "play_arrow",
        )  # fmt: skip


async def _body(visit: PageVisit, message: MessageFacts) -> None:
    if not message.body_bytes:
        ui.label("The body is empty.").classes("quiet")
        return
    body, codec = body_of(message), visit.desk.settings.bodies
    decoded = None
    if codec is not None and len(body) == message.body_bytes:
        decoded = await schema_form(body, codec)
    forms = body_forms(body, decoded)
    with ui.tabs().props("dense no-caps align=left inline-label") as tabs:
        for form in forms:
            ui.tab(form.name)
    with ui.tab_panels(tabs, value=forms[0].name).classes("w-full").style("background: none"):
        for form in forms:
            with ui.tab_panel(form.name).style("padding: 6px 0"):
                body_text(form.text)
                if form.is_cut or message.is_cut:
                    ui.label("Only the beginning is shown.").classes("quiet small")


async def _who_consumed(visit: PageVisit, message: MessageFacts) -> None:
    with panel("Who has consumed it"):
        try:
            described = await visit.ask("topics.describe", topic=message.topic)
            lags = await asyncio.gather(
                *(
                    visit.ask(
                        "groups.lag", group=group, topic=message.topic, limit=1_000,
                        search=f"{message.broker}:{message.queue:010}",
                    )
                    for group in described.groups[:_GROUPS_MAX]
                ),
                return_exceptions=True,
            )  # fmt: skip
        except SprocketError as error:
            show_problem(error)
            return
        rows = consumed_rows(message, zip(described.groups, lags, strict=False))
        if rows:
            table(_CONSUMED, rows, key="group")
        else:
            ui.label("No group consumes this topic.").classes("quiet")


async def _copies(visit: PageVisit, message: MessageFacts) -> None:
    if message.message_id is None:
        return
    topic = message.properties.get("RETRY_TOPIC") or message.topic
    given: dict[str, Any] = {"topic": topic, "id": message.message_id, "body_bytes": 0}
    with panel("Its way: retries and dead letters"):
        try:
            copies = (await visit.ask("messages.journey", **given)).messages
        except SprocketError as error:
            show_problem(error)
            return
        if copies:
            table(_COPIES, message_rows(copies, visit.now_ms()), key="id")
        else:
            ui.label("The key index knows no copy of it.").classes("quiet")


PAGE = ConsolePage(MESSAGE_PATH, "Message", None, build)
