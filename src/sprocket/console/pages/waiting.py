"""What waits: delayed messages, and transactions that nobody has ended."""

from __future__ import annotations

from nicegui import ui

from sprocket.base.errors import SprocketError
from sprocket.console.views.messages import message_rows
from sprocket.console.views.waiting import delayed_rows, delayed_topic_rows, pending_rows
from sprocket.console.web.changing import ChangeOffer, change_button
from sprocket.console.web.parts import TableColumn, empty, panel, table
from sprocket.console.web.visits import ConsolePage, PageVisit, show_problem

_DELAYED = (
    TableColumn("broker", "Broker"),
    TableColumn("waiting", "Waiting", is_number=True),
    TableColumn("next", "Next is due"),
    TableColumn("due", "Due", is_wide=True, is_minor=True),
)
_TOPICS = (
    TableColumn("topic", "Topic"),
    TableColumn("waiting", "Waiting", is_number=True),
)
_PENDING = (
    TableColumn("id", "Message"),
    TableColumn("topic", "Topic"),
    TableColumn("ago", "Since"),
    TableColumn("producers", "Producer group"),
    TableColumn("checks", "Checks", is_number=True),
    TableColumn("body", "Body", is_code=True, is_wide=True, is_minor=True),
)
_PARKED = (
    TableColumn("id", "Message"),
    TableColumn("ago", "Given up"),
    TableColumn("keys", "Keys"),
    TableColumn("body", "Body", is_code=True, is_wide=True),
)
_SHOWN_MAX, _BODY_BYTES = 200, 300


async def build(visit: PageVisit) -> None:
    """Shows what waits; what one kind of broker does not tell leaves the rest."""
    with panel("Delayed messages"):
        await _delayed(visit)
    with panel("Open transactions"):
        await _pending(visit)
    with panel("Transactions that are given up"):
        await _parked(visit)


async def _delayed(visit: PageVisit) -> None:
    with ui.row().classes("bar"):
        change_button(
            visit,
            ChangeOffer("delayed.recall", "Recall a message", asked=("handle",)),
            "cancel_schedule_send",
        )
    try:
        brokers = (await visit.ask("delayed.waiting")).brokers
    except SprocketError as error:
        show_problem(error)
        return
    table(_DELAYED, delayed_rows(brokers, visit.now_ms()), key="id")
    if topics := delayed_topic_rows(brokers):
        table(_TOPICS, topics, key="topic")
    else:
        ui.label("No message waits for its time.").classes("quiet")


async def _pending(visit: PageVisit) -> None:
    try:
        found = await visit.ask("transactions.pending", limit=_SHOWN_MAX, body_bytes=_BODY_BYTES)
    except SprocketError as error:
        show_problem(error)
        return
    if not found.transactions:
        empty("No transaction is open", "Every one was committed or rolled back.")
        return
    table(_PENDING, pending_rows(found.transactions, visit.now_ms()), key="id")
    if found.is_cut:
        ui.label("There may be more.").classes("quiet small")


async def _parked(visit: PageVisit) -> None:
    try:
        found = await visit.ask("transactions.parked", limit=_SHOWN_MAX, body_bytes=_BODY_BYTES)
    except SprocketError as error:
        show_problem(error)
        return
    if not found.messages:
        empty("None is given up", "One is, when its producers never answered a check.")
        return
    table(_PARKED, message_rows(found.messages, visit.now_ms()), key="id")
    with ui.row().classes("bar"):
        change_button(
            visit, ChangeOffer("transactions.check", "Check one again", asked=("id",)), "replay"
        )


PAGE = ConsolePage("/waiting", "Waiting", "schedule", build)
