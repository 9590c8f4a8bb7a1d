"""Changes: a button, a form, what would change, a confirmation, and what was done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from nicegui import ui

from sprocket.base.errors import SprocketError
from sprocket.console.operations.table import OPERATIONS
from sprocket.console.operations.values import ChangeReport
from sprocket.console.views.changes import SHOWN_MAX, change_rows
from sprocket.console.views.forms import FieldKind, FormField, form_fields, parsed
from sprocket.console.web.parts import TableColumn, table
from sprocket.console.web.visits import PageVisit, show_problem

_COLUMNS = (
    TableColumn("what", "What", is_wide=True),
    TableColumn("broker", "Broker"),
    TableColumn("before", "Now", is_wide=True),
    TableColumn("after", "Then", is_wide=True),
)
#: What is said of a field's form behind what it means.
_HINTS = {
    FieldKind.TIME: " (UTC)",
    FieldKind.PAIRS: " One NAME=VALUE a line; -NAME takes one away.",
    FieldKind.LIST: " Separated by commas.",
}


@dataclass(frozen=True, slots=True)
class ChangeOffer:
    """A change that a page offers.

    Attributes:
        operation: its name.
        title: of its button and dialog.
        about: what it is about, in the dialog.
        asked: parameters that a form asks for.
        fixed: parameters that are given.
        first: what fields contain at first.
        leads_to: the path to go to when it is done; None to show the page anew.
    """

    operation: str
    title: str
    about: str = ""
    asked: Sequence[str] = ()
    fixed: Mapping[str, Any] = field(default_factory=dict)
    first: Mapping[str, Any] = field(default_factory=dict)
    leads_to: str | None = None


def change_button(visit: PageVisit, offer: ChangeOffer, icon: str) -> ui.button:
    """A button that opens the dialog of a change; switched off where nothing may change."""
    button = ui.button(offer.title, icon=icon, on_click=lambda: open_change(visit, offer))
    is_destructive = OPERATIONS[offer.operation].is_destructive
    button.props("outline dense no-caps" + (" color=negative" if is_destructive else ""))
    if not visit.may_change:
        button.disable()
        with button:
            ui.tooltip("The console was started with --read-only")
    return button


def open_change(visit: PageVisit, offer: ChangeOffer) -> None:
    """Opens the dialog of a change."""
    with ui.dialog() as dialog, ui.card().classes("dialog"):
        _ChangeDialog(visit, offer, dialog).begin()
    dialog.on("hide", dialog.delete)
    dialog.open()


class _ChangeDialog:
    """The dialog: first the form, then what would change, then the change."""

    def __init__(self, visit: PageVisit, offer: ChangeOffer, dialog: ui.dialog) -> None:
        self._visit = visit
        self._offer = offer
        self._dialog = dialog
        operation = OPERATIONS[offer.operation]
        self._is_destructive = operation.is_destructive
        self._fields = form_fields(operation, offer.asked)
        self._inputs: dict[str, Any] = {}
        heading = ui.label(f"{offer.title} {offer.about}".strip())
        heading.classes("panel-title").props("role=heading aria-level=2")
        ui.label(operation.title).classes("quiet small")
        self._form = ui.column().classes("w-full")
        self._result = ui.column().classes("w-full").props("aria-live=polite")
        with ui.row().classes("bar justify-end"):
            ui.button("Cancel", on_click=dialog.close).props("flat no-caps")
            self._check = ui.button("Check", on_click=self._try).props("no-caps")
            self._confirm = ui.button("Confirm", on_click=self._do).props(
                "no-caps" + (" color=negative" if self._is_destructive else "")
            )
            self._confirm.set_visibility(False)

    def begin(self) -> None:
        """Shows the form; without one, what would change."""
        with self._form:
            for each in self._fields:
                start = self._offer.first.get(each.name, each.default)
                self._inputs[each.name] = _input(each, start).on_value_change(self._changed)
        if not self._fields:
            self._check.set_visibility(False)
            ui.timer(0, self._try, once=True)

    def _changed(self) -> None:
        """What was checked is not what would be done any more."""
        self._confirm.set_visibility(False)
        self._check.set_visibility(True)

    def _given(self) -> dict[str, Any]:
        values = {name: each.value for name, each in self._inputs.items()}
        return {**parsed(self._fields, values), **self._offer.fixed}

    async def _try(self) -> None:
        self._result.clear()
        with self._result:
            try:
                report = await self._visit.ask(self._offer.operation, **self._given(), dry_run=True)
            except SprocketError as error:
                show_problem(error)
                return
            _show_report(report)
        if report.changes:
            self._check.set_visibility(False)
            self._confirm.set_visibility(True)

    async def _do(self) -> None:
        self._confirm.disable()
        try:
            report = await self._visit.change(self._offer.operation, **self._given())
        except SprocketError as error:
            self._confirm.enable()
            self._confirm.set_visibility(False)
            self._check.set_visibility(True)
            self._result.clear()
            with self._result:
                show_problem(error)
            return
        count = len(report.changes)
        ui.notify(f"{self._offer.title}: done ({count})", type="positive")
        self._dialog.close()
        if self._offer.leads_to is not None:
            self._visit.open(self._offer.leads_to)
        else:
            await self._visit.show()


def _show_report(report: ChangeReport) -> None:
    if not report.changes:
        ui.label("Nothing would change.").classes("quiet")
        return
    ui.label("This would change:").classes("small")
    with ui.element("div").classes("lines"):
        table(_COLUMNS, change_rows(report), key="id", rows_per_page=None)
    if len(report.changes) > SHOWN_MAX:
        ui.label(f"and {len(report.changes) - SHOWN_MAX} more").classes("quiet small")


def _input(asked: FormField, start: Any) -> Any:
    """The input of a field."""
    label = asked.label + (" *" if asked.is_required else "")
    if asked.kind is FieldKind.SWITCH and not asked.is_three_way:
        return ui.switch(asked.about or label, value=bool(start))
    made = _empty_input(asked.kind, label, asked.choices, start)
    made.props("dense outlined").classes("w-full")
    if hint := asked.about + _HINTS.get(asked.kind, ""):
        with made.add_slot("hint"):
            ui.label(hint)
    return made


def _empty_input(kind: FieldKind, label: str, choices: Sequence[str], start: Any) -> Any:
    match kind:
        case FieldKind.SWITCH:
            return ui.select({"": "leave it", "yes": "yes", "no": "no"}, label=label, value="")
        case FieldKind.CHOICE:
            return ui.select(list(choices), label=label, value=start, clearable=True)
        case FieldKind.NUMBER:
            return ui.number(label, value=start, format="%d")
        case FieldKind.TIME:
            return ui.input(label, value="").props("type=datetime-local stack-label")
        case FieldKind.LONG_TEXT | FieldKind.PAIRS | FieldKind.LIST:
            text = start if isinstance(start, str) else "\n".join(start or ())
            return ui.textarea(label, value=text).props("autogrow")
        case FieldKind.SECRET:
            made = ui.input(label, value=start or "")
            return made.props("type=password autocomplete=new-password")
        case _:
            return ui.input(label, value=start or "").props("autocomplete=off")
