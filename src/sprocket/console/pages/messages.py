"""Messages of a topic: the newest, live, by key, id, time or offset."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nicegui import ui

from sprocket.base.errors import SprocketError, UsageError
from sprocket.console.views.forms import time_in
from sprocket.console.views.messages import message_rows
from sprocket.console.web.parts import TableColumn, empty, panel, table
from sprocket.console.web.visits import ConsolePage, PageVisit, show_problem

COLUMNS = (
    TableColumn("id", "Message"),
    TableColumn("stored", "Stored (UTC)"),
    TableColumn("place", "Queue", is_minor=True),
    TableColumn("offset", "Offset", is_number=True, is_minor=True),
    TableColumn("tag", "Tag", is_minor=True),
    TableColumn("keys", "Keys", is_minor=True),
    TableColumn("size", "Size", is_number=True, is_minor=True),
    TableColumn("body", "Body", is_code=True, is_wide=True),
)
_WAYS = {
    "tail": "Newest", "key": "By key", "id": "By id", "time": "By time", "offset": "By offset",
}  # fmt: skip
#: Bytes of each body in a list, seconds between two looks of a live tail, and for how long one
#: goes on when nobody touches it.
_BODY_BYTES, _LIVE_SECONDS, _LIVE_LOOKS_MAX = 300, 2.0, 900


class _MessageSearch:
    """The search of a page."""

    def __init__(self, visit: PageVisit) -> None:
        self._visit = visit
        self._looks = 0
        self._is_busy = False
        self._way = visit["way"] if visit["way"] in _WAYS else "tail"
        self._inputs: dict[str, Any] = {}
        with panel():
            with ui.row().classes("bar"):
                self._field("topic", "Topic", visit["topic"])
                ways = ui.toggle(_WAYS, value=self._way, on_change=self._turn)
                ways.props("dense no-caps unelevated")
            self._row = ui.row().classes("bar")
        self._box = ui.element("section").classes("panel").props("aria-live=polite")
        self._show_fields()

    def _field(self, name: str, label: str, value: str = "", **props: str) -> None:
        field = ui.input(label, value=value).props("dense outlined").classes("grow")
        for key, text in props.items():
            field.props(f"{key}={text}")
        field.on("keydown.enter", self.search)
        self._inputs[name] = field

    def _turn(self, event: Any) -> None:
        self._way = event.value
        self._show_fields()

    def _show_fields(self) -> None:
        self._row.clear()
        visit = self._visit
        with self._row:
            if self._way == "key":
                self._field("key", "Key", visit["key"])
            elif self._way == "id":
                self._field("id", "Offset id, or with a topic its message id", visit["id"])
            elif self._way == "offset":
                self._field("broker", "Broker", visit["broker"])
                self._field("queue", "Queue", visit["queue"] or "0", type="number")
                self._field("offset", "Offset", visit["offset"] or "0", type="number")
            if self._way in ("time", "key"):
                for name, label in (("since", "From (UTC)"), ("until", "Until (UTC)")):
                    self._field(name, label, visit[name], type="datetime-local")
                    self._inputs[name].props("stack-label")
            ui.button("Search", icon="search", on_click=self.search).props("no-caps dense")
            if self._way == "tail":
                self._live = ui.switch("Live")
                ui.timer(_LIVE_SECONDS, self._look)

    async def _look(self) -> None:
        if not self._live.value:
            self._looks = 0
            return
        self._looks += 1
        if self._looks > _LIVE_LOOKS_MAX:
            self._live.set_value(False)
        elif not self._is_busy:
            await self.search()

    def _text(self, name: str) -> str:
        found = self._inputs.get(name)
        return "" if found is None else str(found.value or "").strip()

    async def search(self) -> None:
        """Asks, and shows what is found."""
        self._is_busy = True
        shown: Callable[[], None]
        try:
            found, is_cut = await self._found()
            shown = lambda: self._show(found, is_cut=is_cut)  # noqa: E731
        except SprocketError as error:
            failure = error
            shown = lambda: show_problem(failure)  # noqa: E731
        finally:
            self._is_busy = False
        self._box.clear()
        with self._box:
            shown()

    async def _found(self) -> tuple[list[Any], bool]:
        topic, way = self._text("topic"), self._way
        self._visit.keep(topic=topic, way=way)
        given: dict[str, Any] = {"body_bytes": _BODY_BYTES}
        if topic:
            given["topic"] = topic
        elif way != "id":
            raise UsageError("name the topic first")
        if way in ("time", "key"):
            since, until = time_in(self._text("since")), time_in(self._text("until"))
            given |= {"since": since} if since else {}
            given |= {"until": until} if until else {}
        if way == "key":
            found = await self._visit.ask("messages.by_key", key=self._text("key"), **given)
        elif way == "id":
            found = await self._visit.ask("messages.get", id=self._text("id"), **given)
        elif way == "time":
            found = await self._visit.ask("messages.by_time", limit=200, **given)
        elif way == "offset":
            numbers = {name: _whole(name, self._text(name)) for name in ("queue", "offset")}
            found = await self._visit.ask(
                "messages.by_offset", broker=self._text("broker"), limit=100, **numbers, **given
            )
            return found.messages, found.next_offset is not None
        else:
            found = await self._visit.ask("messages.tail", limit=50, **given)
            return found.messages[::-1], found.is_cut
        return found.messages, found.is_cut

    def _show(self, found: list[Any], *, is_cut: bool) -> None:
        if not found:
            empty("No message is found", "Nothing was stored there, or it has expired.")
            return
        table(COLUMNS, message_rows(found, self._visit.now_ms()), key="id")
        if is_cut:
            ui.label("There are more: narrow the search.").classes("quiet small")

    def invite(self) -> None:
        """Says what to do before anything is searched."""
        with self._box:
            empty(
                "Nothing is searched yet", "Name a topic and search, or give the id of a message."
            )


def _whole(name: str, text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise UsageError(f"the {name} is a whole number, not {text[:40]!r}")
    return int(text)


async def build(visit: PageVisit) -> None:
    """Shows the search, and its result if the address says enough."""
    search = _MessageSearch(visit)
    if visit["topic"] or visit["id"]:
        await search.search()
    else:
        search.invite()


PAGE = ConsolePage("/messages", "Messages", "mail", build)
