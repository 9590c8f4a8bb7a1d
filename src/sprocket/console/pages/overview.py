"""The overview: brokers, rates, disks, replicas, and plots over time."""

from __future__ import annotations

from typing import Any

from nicegui import ui

from sprocket.base.errors import SprocketError
from sprocket.console.history.sampler import SAMPLE_SECONDS
from sprocket.console.views.overview import (
    broker_rows,
    cluster_figures,
    disk_look,
    replica_rows,
)
from sprocket.console.views.units import count_text, counted, percent_text, rate_text
from sprocket.console.web.parts import TableColumn, empty, panel, plot, replot, table, tile
from sprocket.console.web.visits import ConsolePage, PageVisit
from sprocket.plots.options import line_options

_COLUMNS = (
    TableColumn("broker", "Broker"),
    TableColumn("role", "Role"),
    TableColumn("state", "State"),
    TableColumn("put", "In", is_number=True),
    TableColumn("get", "Out", is_number=True),
    TableColumn("today", "In today", is_number=True, is_minor=True),
    TableColumn("disk", "Disk", is_number=True),
    TableColumn("log", "Log", is_number=True, is_minor=True),
    TableColumn("oldest", "Oldest message", is_minor=True),
    TableColumn("up", "Runs for", is_minor=True),
    TableColumn("version", "Version", is_minor=True),
    TableColumn("address", "Address", is_code=True, is_minor=True),
    TableColumn("cluster", "Cluster", is_minor=True),
)
_REPLICAS = (
    TableColumn("broker", "Broker"),
    TableColumn("number", "Number", is_number=True),
    TableColumn("role", "Role"),
    TableColumn("alive", "Answers"),
    TableColumn("sync", "In sync"),
    TableColumn("behind", "Behind", is_number=True),
    TableColumn("epoch", "Epoch", is_number=True, is_minor=True),
    TableColumn("address", "Address", is_code=True, is_minor=True),
)
#: Figure, title and highest value of each plot; a share has one.
_PLOTS = (
    ("put", "Messages in per second", None),
    ("get", "Messages out per second", None),
    ("disk", "Disk in use, %", 100.0),
)
_SPANS = {3_600: "1 h", 6 * 3_600: "6 h", 86_400: "1 day", 14 * 86_400: "14 days"}


async def build(visit: PageVisit) -> None:
    """Shows the brokers as the user sees them; plots are of the console's own samples."""
    processes = await visit.processes()
    if not processes:
        empty("No broker is registered", "Start one: sprocket broker --nameserver HOST:PORT")
        return
    with ui.element("div").classes("tiles"):
        found = cluster_figures(processes)
        tile("Brokers", count_text(found.brokers), counted(found.processes, "process", "processes"))
        unreachable = found.processes - found.reachable
        tile("Do not answer", count_text(unreachable), "" if unreachable else "all answer")
        tile("In", rate_text(found.put), "all masters")
        tile("Out", rate_text(found.get), "all brokers")
        tile("Fullest disk", percent_text(found.disk), _disk_words(found.disk))
    with panel("Brokers"):
        rows = table(_COLUMNS, broker_rows(processes, visit.now_ms()), key="id")
    await _replicas(visit)
    if any(each.state for each in processes):
        _plots(visit, rows)


def _disk_words(share: float | None) -> str:
    return {"": "", "warn": "clean up soon", "bad": "brokers refuse messages"}[disk_look(share)]


async def _replicas(visit: PageVisit) -> None:
    try:
        members = replica_rows((await visit.ask("brokers.replicas")).groups)
    except SprocketError:  # a broker that does not tell has its place in the table above
        return
    if members:
        with panel("Replicas"):
            table(_REPLICAS, members, key="id")


def _plots(visit: PageVisit, rows: ui.table) -> None:
    sampler, loaded_ms = visit.sampler, visit.now_ms()
    with ui.row().classes("bar"):
        ui.label("Over time").classes("panel-title grow").props("role=heading aria-level=2")
        span = ui.toggle(_SPANS, value=3_600).props("dense no-caps unelevated")
    failure = ui.label().classes("quiet small")
    charts: dict[str, ui.echart] = {}
    with ui.element("div").classes("plots"):
        for figure, title, highest in _PLOTS:
            charts[figure] = plot(line_options({}, highest=highest), title)

    def update() -> None:
        if not visit.is_open:
            return
        now_ms = visit.now_ms()
        begin_ms = now_ms - (span.value or 3_600) * 1_000
        for figure, _, highest in _PLOTS:
            lines = sampler.history.of_figure(figure, begin_ms, now_ms)
            shown = lines if highest is None else _percents(lines)
            replot(charts[figure], line_options(shown, span=(begin_ms, now_ms), highest=highest))
        if sampler.sampled_ms > loaded_ms:
            rows.rows = broker_rows(sampler.processes, now_ms)
            rows.update()
        failure.set_text(
            f"The newest sample is missing: {sampler.failure}; the console's own keys "
            "are client.access_key and client.secret_key"
            if sampler.failure
            else ""
        )

    span.on_value_change(update)
    update()
    ui.timer(SAMPLE_SECONDS, update)


def _percents(lines: dict[str, Any]) -> dict[str, Any]:
    return {
        name: [(at, None if value is None else round(value * 100, 2)) for at, value in points]
        for name, points in lines.items()
    }


PAGE = ConsolePage("/", "Overview", "dashboard", build)
