"""Users, policies and audit entries as rows of tables. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from sprocket.console.operations.accounts import PermissionFacts, PolicyFacts, UserFacts
from sprocket.console.views.bodies import first_line, visible


def user_rows(users: Iterable[UserFacts]) -> list[dict[str, Any]]:
    """A row for each user at each server."""
    return [
        {
            "id": f"{each.user}@{each.broker}",
            "user": visible(each.user),
            "broker": each.broker,
            "kind": each.kind or "",
            "status": each.status or "",
            "status_look": "bad" if each.status == "disable" else "",
        }
        for each in users
    ]


def policy_rows(policies: Iterable[PolicyFacts]) -> list[dict[str, Any]]:
    """A row for each entry of the policies."""
    return [
        {
            "id": f"{each.user}@{each.broker} {each.resource} {number}",
            "user": visible(each.user),
            "broker": each.broker,
            "resource": visible(each.resource),
            "actions": ", ".join(each.actions),
            "decision": each.decision,
            "decision_look": "bad" if each.decision.lower() == "deny" else "good",
            "networks": ", ".join(each.networks) or "any",
        }
        for number, each in enumerate(policies)
    ]


def verdict_rows(verdicts: Iterable[PermissionFacts]) -> list[dict[str, Any]]:
    """A row for what each broker would decide."""
    return [
        {
            "id": each.broker,
            "broker": each.broker,
            "verdict": "allowed" if each.is_allowed else "denied",
            "verdict_look": "good" if each.is_allowed else "bad",
            "why": visible(each.why),
        }
        for each in verdicts
    ]


def audit_rows(entries: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """A row for each entry of the audit log, as `audit.list` gives it, the newest first."""
    rows = [
        {
            "id": number,
            "time": str(entry["time"]),
            "server": str(entry["server"]),
            "user": visible(str(entry["user"])) or "nobody",
            "address": str(entry["address"]),
            "request": str(entry["request"]),
            "result": _result(entry),
            "result_look": "bad" if entry["result"] else "good",
            "named": first_line(
                ", ".join(f"{name} {_word(value)}" for name, value in entry["named"].items()), 300
            ),
        }
        for number, entry in enumerate(entries)
    ]
    return rows[::-1]


def _result(entry: Mapping[str, Any]) -> str:
    if not entry["result"]:
        times = entry.get("times") or 1
        return "done" if times == 1 else f"done {times} times"
    return first_line(entry.get("remark") or f"code {entry['result']}", 200)


def _word(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
