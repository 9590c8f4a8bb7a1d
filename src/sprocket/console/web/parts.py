"""Parts of pages: panels, facts, tables, plots, and what stands where there is nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nicegui import ui

#: Rows of a page of a table.
ROWS_OF_A_PAGE = 25
#: One template for every cell: values are interpolated as text, never as HTML.
_CELL = """
<q-td :props="props" :class="props.col.tdClass">
  <a v-if="props.row[props.col.name + '_link']" class="cell-link"
     :href="props.row[props.col.name + '_link']">{{
       props.row[props.col.name + '_text'] ?? props.value }}</a>
  <span v-else :class="[props.col.look, props.row[props.col.name + '_look']]">{{
    props.row[props.col.name + '_text'] ?? props.value }}</span>
</q-td>
"""


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column of a table. A row has its value under `name`, by which it is sorted; under
    `name_text` what is shown instead, under `name_link` where it leads, under `name_look` a class.

    Attributes:
        is_number: whether it stands at the right.
        is_code: whether it is an id or the like.
        is_wide: whether its text may take several lines.
        is_minor: whether small screens leave it out.
    """

    name: str
    label: str
    is_number: bool = False
    is_code: bool = False
    is_wide: bool = False
    is_minor: bool = False

    def declared(self) -> dict[str, Any]:
        """The column as Quasar's table takes it."""
        minor = " gt-xs" if self.is_minor else ""
        wide = " wide" if self.is_wide else ""
        return {
            "name": self.name,
            "label": self.label,
            "field": self.name,
            "sortable": True,
            "align": "right" if self.is_number else "left",
            "look": "cell-code" if self.is_code else "cell-text",
            "tdClass": f"{'number' if self.is_number else ''}{minor}{wide}",
            "classes": minor.strip(),
            "headerClasses": minor.strip(),
        }


def table(
    columns: Sequence[TableColumn],
    rows: list[dict[str, Any]],
    *,
    key: str,
    selection: bool = False,
    rows_per_page: int | None = ROWS_OF_A_PAGE,
) -> ui.table:
    """A table whose rows are all there; it sorts and pages in the browser.

    Args:
        key: the column by which rows are told apart.
        selection: whether rows can be chosen.
        rows_per_page: None for no pages.
    """
    pages = rows_per_page is not None and len(rows) > rows_per_page
    made = ui.table(
        columns=[each.declared() for each in columns],
        rows=rows,
        row_key=key,
        selection="multiple" if selection else None,
        pagination={"rowsPerPage": rows_per_page} if pages else {"rowsPerPage": 0},
    )
    made.props("flat dense" + ("" if pages else " hide-pagination"))
    made.classes("w-full").style("width: 100%")
    made.add_slot("body-cell", _CELL)
    return made


def panel(title: str | None = None) -> ui.element:
    """A box with a heading."""
    box = ui.element("section").classes("panel")
    if title is not None:
        with box:
            ui.label(title).classes("panel-title").props("role=heading aria-level=2")
    return box


def facts(values: Mapping[str, str]) -> None:
    """Names and values, one a line."""
    with ui.element("div").classes("facts"):
        for name, value in values.items():
            ui.label(name).classes("fact-name")
            ui.label(value).classes("fact-value")


def tile(name: str, value: str, more: str = "") -> None:
    """One figure."""
    with ui.element("div").classes("tile"):
        ui.label(name).classes("tile-name")
        ui.label(value).classes("tile-value")
        ui.label(more).classes("tile-more")


def empty(title: str, more: str) -> None:
    """Says that there is nothing, and what to do."""
    with ui.element("div").classes("empty"):
        ui.label(title).classes("empty-title")
        ui.label(more).classes("empty-more")


def body_text(text: str) -> None:
    """A text of several lines as it is, in a fixed font; it can be scrolled by keys."""
    ui.label(text).classes("body-text").props("tabindex=0")


def plot(options: dict[str, Any], title: str) -> ui.echart:
    """A plot in its box."""
    with ui.element("section").classes("panel"):
        ui.label(title).classes("panel-title").props("role=heading aria-level=2")
        return ui.echart(options).classes("plot").props(f'role=img aria-label="{title}"')


def replot(chart: ui.echart, options: dict[str, Any]) -> None:
    """Shows other lines in a plot."""
    chart.options.clear()
    chart.options.update(options)
    chart.update()
