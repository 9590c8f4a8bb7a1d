"""A list that is searched and paged by the server, so that its length does not matter."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from nicegui import ui

from sprocket.base.errors import SprocketError
from sprocket.console.views.units import count_text
from sprocket.console.web.parts import ROWS_OF_A_PAGE, TableColumn, empty, table
from sprocket.console.web.visits import PageVisit, show_problem

#: Loads a page: parameters in; rows, and the page that they are from.
Load = Callable[[dict[str, Any]], Awaitable[tuple[list[dict[str, Any]], Any]]]


class SearchedList:
    """A search field, a page of rows, and the way to the next and the last page.

    Args:
        load: loads a page; it takes `search`, `after`, `limit` and the switches.
        nothing: what is said where there are no rows: a title, and what to do.
    """

    def __init__(
        self, visit: PageVisit, columns: Sequence[TableColumn], *, key: str, load: Load,
        nothing: tuple[str, str],
    ) -> None:  # fmt: skip
        self._columns = columns
        self._key = key
        self._load = load
        self._nothing = nothing
        self._search = visit["search"]
        self._switches: dict[str, bool] = {}
        #: `after` of the pages before this one, and of this one.
        self._trail: list[str | None] = [None]
        self._asked = 0
        self._box: ui.element | None = None

    def search_field(self, label: str) -> None:
        """Adds the field for a part of a name."""

        async def search(event: Any) -> None:
            self._search = str(event.value or "")[:255]
            await self._restart()

        field = ui.input(label, value=self._search, on_change=search)
        field.props("dense outlined clearable debounce=250 autofocus").classes("grow")

    def switch(self, name: str, label: str) -> None:
        """Adds a switch of the list, off at first."""
        self._switches[name] = False

        async def turn(event: Any) -> None:
            self._switches[name] = bool(event.value)
            await self._restart()

        ui.switch(label, on_change=turn)

    async def show(self) -> None:
        """Adds the rows."""
        self._box = ui.element("section").classes("panel")
        await self._reload()

    async def _restart(self) -> None:
        self._trail = [None]
        await self._reload()

    async def _reload(self) -> None:
        box = self._box
        if box is None:
            return
        self._asked += 1
        number = self._asked
        given: dict[str, Any] = {"limit": ROWS_OF_A_PAGE, **self._switches}
        if self._search:
            given["search"] = self._search
        if self._trail[-1] is not None:
            given["after"] = self._trail[-1]
        failure: SprocketError | None = None
        rows: list[dict[str, Any]] = []
        page: Any = None
        try:
            rows, page = await self._load(given)
        except SprocketError as error:
            failure = error
        if number != self._asked:  # something newer was asked for meanwhile
            return
        box.clear()
        with box:
            if failure is not None:
                show_problem(failure)
            elif not rows:
                empty(*self._nothing)
            else:
                table(self._columns, rows, key=self._key, rows_per_page=None)
                self._paging(page, len(rows))

    def _paging(self, page: Any, shown: int) -> None:
        begin = (len(self._trail) - 1) * ROWS_OF_A_PAGE
        with ui.row().classes("bar justify-end"):
            total = "" if page.total is None else f" of {count_text(page.total)}"
            ui.label(f"{count_text(begin + 1)} to {count_text(begin + shown)}{total}").classes(
                "quiet small"
            )
            back = ui.button(icon="chevron_left", on_click=self._back)
            back.props('flat dense aria-label="Page before"').set_enabled(len(self._trail) > 1)
            on = ui.button(icon="chevron_right", on_click=lambda: self._on(page.next))
            on.props('flat dense aria-label="Next page"').set_enabled(page.next is not None)

    async def _back(self) -> None:
        self._trail.pop()
        await self._reload()

    async def _on(self, after: str | None) -> None:
        self._trail.append(after)
        await self._reload()
