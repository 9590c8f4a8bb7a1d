"""Users and policies: list, create, change, grant, revoke, and a test of what somebody may do."""

from __future__ import annotations

from typing import Any

from nicegui import ui

from sprocket.base.errors import SprocketError
from sprocket.console.views.access import policy_rows, user_rows, verdict_rows
from sprocket.console.web.changing import ChangeOffer, change_button
from sprocket.console.web.parts import TableColumn, empty, panel, table
from sprocket.console.web.visits import ConsolePage, PageVisit, show_problem

_USERS = (
    TableColumn("user", "User", is_wide=True),
    TableColumn("kind", "Kind"),
    TableColumn("status", "Status"),
    TableColumn("broker", "At", is_minor=True),
)
_POLICIES = (
    TableColumn("user", "User", is_wide=True),
    TableColumn("decision", "Decision"),
    TableColumn("actions", "Actions", is_wide=True),
    TableColumn("resource", "Resource", is_wide=True),
    TableColumn("networks", "From", is_minor=True),
    TableColumn("broker", "At", is_minor=True),
)
_VERDICTS = (
    TableColumn("broker", "Broker"),
    TableColumn("verdict", "Verdict"),
    TableColumn("why", "Why", is_wide=True),
)
_SHOWN_MAX = 1_000


async def build(visit: PageVisit) -> None:
    """Shows users and what they may do."""
    users = await visit.ask("users.list", limit=_SHOWN_MAX)
    if not users.items:
        with panel("Users"):
            empty(
                "The brokers know no users",
                "Anybody may do anything there. broker.authentication and broker.authorization "
                "change that; begin with a super user.",
            )
            _user_buttons(visit)
        return
    with panel("Users"):
        _user_buttons(visit)
        table(_USERS, user_rows(users.items), key="id")
    with panel("Policies"):
        policies = await visit.ask("policies.list", limit=_SHOWN_MAX)
        _policy_buttons(visit)
        if policies.items:
            table(_POLICIES, policy_rows(policies.items), key="id")
        else:
            empty("There are no policies", "Without one, only super users may do anything.")
    with panel("May this user do that?"):
        _test(visit)


def _user_buttons(visit: PageVisit) -> None:
    with ui.row().classes("bar"):
        change_button(
            visit,
            ChangeOffer("users.create", "Create a user", asked=("user", "password", "kind")),
            "person_add",
        )
        change_button(
            visit,
            ChangeOffer(
                "users.change", "Change a user", asked=("user", "password", "kind", "is_enabled")
            ),
            "manage_accounts",
        )
        change_button(
            visit, ChangeOffer("users.delete", "Delete a user", asked=("user",)), "person_remove"
        )


def _policy_buttons(visit: PageVisit) -> None:
    with ui.row().classes("bar"):
        change_button(
            visit,
            ChangeOffer(
                "policies.grant", "Grant or deny",
                asked=("user", "resource", "actions", "is_denied", "networks", "replace"),
                first={"resource": "Topic:", "actions": ["Pub"]},
            ),
            "add_moderator",
        )  # fmt: skip
        change_button(
            visit,
            ChangeOffer("policies.revoke", "Revoke", asked=("user", "resource", "actions")),
            "remove_moderator",
        )


def _test(visit: PageVisit) -> None:
    fields: dict[str, Any] = {}
    with ui.row().classes("bar"):
        for name, label, value in (
            ("user", "Who", ""), ("action", "Does", "Pub"),
            ("resource", "With", "Topic:"), ("source", "From address", ""),
        ):  # fmt: skip
            fields[name] = ui.input(label, value=value).props("dense outlined").classes("grow")
        ui.button("Test", on_click=lambda: test()).props("outline dense no-caps")
    box = ui.column().classes("w-full").props("aria-live=polite")

    async def test() -> None:
        given = {name: str(field.value or "").strip() for name, field in fields.items()}
        box.clear()
        with box:
            try:
                found = await visit.ask("policies.test", **given)
            except SprocketError as error:
                show_problem(error)
                return
            table(_VERDICTS, verdict_rows(found.verdicts), key="id")


PAGE = ConsolePage("/access", "Users and policies", "admin_panel_settings", build)
