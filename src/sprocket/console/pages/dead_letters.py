"""Dead letters of a group: list, search, why, send chosen ones back."""

from __future__ import annotations

from typing import Any

from nicegui import ui

from sprocket.base.errors import SprocketError, UsageError
from sprocket.console.views.forms import time_in
from sprocket.console.views.letters import letter_rows, matches
from sprocket.console.web.changing import ChangeOffer, open_change
from sprocket.console.web.parts import TableColumn, empty, panel, table
from sprocket.console.web.visits import ConsolePage, PageVisit, show_problem

_COLUMNS = (
    TableColumn("id", "Message"),
    TableColumn("stored", "Since (UTC)"),
    TableColumn("origin", "Topic"),
    TableColumn("why", "Why", is_minor=True),
    TableColumn("tag", "Tag", is_minor=True),
    TableColumn("keys", "Keys", is_minor=True),
    TableColumn("body", "Body", is_code=True, is_wide=True),
)
_LETTERS_MAX, _BODY_BYTES = 500, 300


async def build(visit: PageVisit) -> None:
    """Shows the dead letters of the group that the address names."""
    await _LettersList(visit).show()


class _LettersList:
    """The page: fields, and the rows that were loaded."""

    def __init__(self, visit: PageVisit) -> None:
        self._visit = visit
        self._rows: list[dict[str, Any]] = []
        self._table: ui.table | None = None
        self._shown_group = ""
        with panel(), ui.row().classes("bar"):
            self._group = ui.input("Group", value=visit["group"])
            self._since = ui.input("From (UTC)").props("type=datetime-local stack-label")
            self._until = ui.input("Until (UTC)").props("type=datetime-local stack-label")
            for field in (self._group, self._since, self._until):
                field.props("dense outlined").classes("grow").on("keydown.enter", self.load)
            ui.button("Show", icon="search", on_click=self.load).props("dense no-caps")
        self._box = ui.element("section").classes("panel").props("aria-live=polite")

    async def show(self) -> None:
        """Shows the letters of the group of the address, or what to do."""
        if self._visit["group"]:
            await self.load()
            return
        with self._box:
            empty("No group is chosen", "Name a consumer group to see its dead letters.")

    async def load(self) -> None:
        """Asks for the letters, and shows them."""
        failure: SprocketError | None = None
        found: Any = None
        try:
            group = str(self._group.value or "").strip()
            if not group:
                raise UsageError("name the consumer group first")
            given: dict[str, Any] = {
                name: time
                for name, field in (("since", self._since), ("until", self._until))
                if (time := time_in(str(field.value or ""))) is not None
            }
            found = await self._visit.ask(
                "dead_letters.list", group=group, limit=_LETTERS_MAX, body_bytes=_BODY_BYTES,
                **given,
            )  # fmt: skip
            self._shown_group = group
            self._visit.keep(group=group)
        except SprocketError as error:
            failure = error
        self._box.clear()
        with self._box:
            if failure is not None:
                show_problem(failure)
            else:
                self._fill(found)

    def _fill(self, found: Any) -> None:
        self._rows = letter_rows(found.messages, self._visit.now_ms())
        if not self._rows:
            empty("It has no dead letters", "A message becomes one when all its retries failed.")
            return
        with ui.row().classes("bar"):
            field = ui.input("Search in these", on_change=lambda event: self._filter(event.value))
            field.props("dense outlined clearable debounce=200").classes("grow")
            self._button("Send chosen back", "to the group", to_topic=False)
            self._button("Send chosen to their topics", "to all groups", to_topic=True)
        self._table = table(_COLUMNS, self._rows, key="id", selection=True)
        if found.is_cut:
            ui.label(f"The oldest {len(self._rows)}; name a time for others.").classes(
                "quiet small"
            )

    def _button(self, title: str, hint: str, *, to_topic: bool) -> None:
        button = ui.button(title, icon="replay", on_click=lambda: self._resend(to_topic=to_topic))
        button.props("outline dense no-caps color=negative")
        with button:
            ui.tooltip(hint if self._visit.may_change else "The console only reads: --read-only")
        button.set_enabled(self._visit.may_change)

    def _filter(self, wanted: Any) -> None:
        if self._table is not None:
            self._table.rows = [row for row in self._rows if matches(row, str(wanted or ""))]
            self._table.selected = []

    def _resend(self, *, to_topic: bool) -> None:
        chosen = [] if self._table is None else [row["id"] for row in self._table.selected]
        if not chosen:
            ui.notify("Choose letters in the table first.", type="warning")
            return
        where = "to their topics" if to_topic else f"to {self._shown_group}"
        count = f"{len(chosen)} dead letter" + ("s" if len(chosen) > 1 else "")
        fixed = {"group": self._shown_group, "ids": chosen, "to_topic": to_topic}
        offer = ChangeOffer("dead_letters.resend", f"Send {count} {where}", fixed=fixed)
        open_change(self._visit, offer)


PAGE = ConsolePage("/dead-letters", "Dead letters", "mark_email_unread", build)
