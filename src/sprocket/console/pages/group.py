"""One group: lag by queue and over time, members, settings; reset, skip, copy, change, delete."""

from __future__ import annotations

from typing import Any

from nicegui import ui

from sprocket.base.errors import SprocketError
from sprocket.console.history.sampler import SAMPLE_SECONDS
from sprocket.console.pages.groups import GROUP_PATH
from sprocket.console.views.bodies import visible
from sprocket.console.views.groups import (
    group_facts,
    lag_lines,
    member_rows,
    progress_rows,
    setting_rows,
    topics_of,
)
from sprocket.console.views.units import count_text, rate_text
from sprocket.console.web.changing import ChangeOffer, change_button
from sprocket.console.web.parts import (
    TableColumn,
    body_text,
    empty,
    facts,
    panel,
    plot,
    replot,
    table,
    tile,
)
from sprocket.console.web.visits import ConsolePage, PageVisit, show_problem
from sprocket.plots.options import line_options

_PROGRESS = (
    TableColumn("topic", "Topic"),
    TableColumn("queue", "Queue"),
    TableColumn("committed", "Committed", is_number=True, is_minor=True),
    TableColumn("end", "End", is_number=True, is_minor=True),
    TableColumn("lag", "Lag", is_number=True),
    TableColumn("consumed", "Last consumed was stored", is_minor=True),
)
_MEMBERS = (
    TableColumn("id", "Client", is_code=True, is_wide=True),
    TableColumn("address", "Address", is_code=True),
    TableColumn("language", "Language", is_minor=True),
    TableColumn("brokers", "Connected to", is_minor=True),
)
_SETTINGS = (
    TableColumn("broker", "Broker"),
    TableColumn("retries", "Retries", is_number=True),
    TableColumn("retry_queues", "Retry queues", is_number=True, is_minor=True),
    TableColumn("ordered", "In order"),
    TableColumn("consume", "May consume"),
    TableColumn("broadcast", "May broadcast", is_minor=True),
)
_QUEUES_MAX, _HOUR_MS = 1_000, 3_600_000


async def build(visit: PageVisit) -> None:
    """Shows the group that the address names."""
    name = visit["name"]
    if not name:
        empty("No group is chosen", "Choose one in the list of groups.")
        return
    group = await visit.ask("groups.describe", group=name)
    lag = await visit.ask("groups.lag", group=name, limit=_QUEUES_MAX)
    await visit.sampler.watch(name)
    ui.label(name).classes("panel-title").style("overflow-wrap: anywhere; font-size: 16px")
    topics = topics_of(lag.queues.items)
    _buttons(visit, name, topics)
    with ui.element("div").classes("tiles"):
        tile("Lag", count_text(lag.lag), "messages not consumed")
        tile("Rate", rate_text(lag.per_second), "over the last minute")
        tile("Members", count_text(len(group.members)), "online")
        tile("Topics", count_text(len(topics)), ", ".join(topics[:3]))
    _lag_plot(visit, name)
    with panel("Lag by queue"):
        if lag.queues.items:
            table(_PROGRESS, progress_rows(lag.queues.items, visit.now_ms()), key="id")
        else:
            empty("It has not consumed anything yet", "Start a consumer of this group.")
    with panel("Members"):
        facts(group_facts(group))
        if group.members:
            _members(visit, name, group.members)
    with panel("Settings"):
        table(_SETTINGS, setting_rows(group.settings), key="id")


#: Operation, title, icon, and what a form asks for.
_CHANGES = (
    ("groups.reset", "Reset offsets", "restore",
     ("topic", "to", "at", "broker", "queue", "offset")),
    ("groups.skip", "Skip the lag", "skip_next", ("topic",)),
    ("groups.clone", "Copy offsets to a group", "content_copy", ("target", "topic")),
    ("groups.change", "Change", "tune",
     ("retry_max_times", "retry_queues", "is_ordered", "may_consume", "may_broadcast",
      "attributes", "broker")),
    ("groups.delete", "Delete", "delete", ("keep_offsets",)),
)  # fmt: skip


def _buttons(visit: PageVisit, name: str, topics: list[str]) -> None:
    with ui.row().classes("bar"):
        ui.button(
            "Dead letters",
            icon="mark_email_unread",
            on_click=lambda: visit.open("/dead-letters", group=name),
        ).props("outline dense no-caps")
        for operation, title, icon, asked in _CHANGES:
            offer = ChangeOffer(
                operation,
                title,
                about=f"of {name}",
                asked=asked,
                fixed={"group": name},
                first={"topic": topics[0]} if len(topics) == 1 else {},
                leads_to="/groups" if operation == "groups.delete" else None,
            )
            change_button(visit, offer, icon)


def _lag_plot(visit: PageVisit, name: str) -> None:
    chart = plot(line_options({}, is_whole=True), "Lag over the last hour")
    note = ui.label().classes("quiet small")

    def update() -> None:
        if not visit.is_open:
            return
        now_ms = visit.now_ms()
        lines = lag_lines(visit.sampler.history.of_group(name, now_ms - _HOUR_MS, now_ms))
        replot(chart, line_options(lines, span=(now_ms - _HOUR_MS, now_ms), is_whole=True))
        note.set_text(
            "" if lines else "Samples begin when somebody opens this page, every 10 s for an hour."
        )
        visit.sampler.keep_watching(name)

    update()
    ui.timer(SAMPLE_SECONDS, update)


def _members(visit: PageVisit, name: str, members: list[Any]) -> None:
    table(_MEMBERS, member_rows(members), key="id")
    clients = {visible(each.client_id): each.client_id for each in members}
    with ui.row().classes("bar"):
        chosen = ui.select(list(clients), label="Member", value=next(iter(clients)))
        chosen.props("dense outlined").classes("grow")
        ui.button("State", on_click=lambda: ask(stacks=False)).props("outline dense no-caps")
        ui.button("Stacks", on_click=lambda: ask(stacks=True)).props("outline dense no-caps")
    box = ui.column().classes("w-full").props("aria-live=polite")

    async def ask(*, stacks: bool) -> None:
        box.clear()
        with box:
            try:
                told = await visit.ask(
                    "groups.running", group=name, client=clients[str(chosen.value)], stacks=stacks
                )
            except SprocketError as error:
                show_problem(error)
                return
            if stacks:
                body_text(visible(told.stacks or "It tells no stacks."))
                return
            said = {**told.properties, "queues": "\n".join(told.queues) or "none"}
            facts({visible(key): visible(value) for key, value in sorted(said.items())})


PAGE = ConsolePage(GROUP_PATH, "Group", None, build)
