"""What a change would do, or did, as rows of a table. Pure."""

from __future__ import annotations

from typing import Any

import msgspec

from sprocket.console.operations.values import ChangeLine, ChangeReport, fields_of
from sprocket.console.views.bodies import first_line

#: Lines that are shown; a report may have thousands.
SHOWN_MAX = 200


def change_rows(report: ChangeReport) -> list[dict[str, Any]]:
    """A row for each line of a report, as far as a dialog shows them."""
    return [
        {
            "id": number,
            "what": line.what,
            "broker": line.broker or "",
            "before": _state(line.before),
            "after": _after(line, dry_run=report.dry_run),
        }
        for number, line in enumerate(report.changes[:SHOWN_MAX])
    ]


def _after(line: ChangeLine, *, dry_run: bool) -> str:
    if line.after is None:
        return "gone" if line.before is not None else ("" if not dry_run else "is done")
    return _differing(line) or _state(line.after)


def _differing(line: ChangeLine) -> str:
    """Only the fields that change, of a thing that was there."""
    before, after = fields_of(line.before), fields_of(line.after)
    if not isinstance(before, dict) or not isinstance(after, dict):
        return ""
    changed = {name: value for name, value in after.items() if before.get(name) != value}
    return _state(changed) if changed else "as it is"


def _state(value: Any) -> str:
    if value is None:
        return ""
    plain = fields_of(value)
    if isinstance(plain, dict):
        shown = {name: each for name, each in plain.items() if each not in (None, "", {}, [])}
        shown.pop("broker", None)  # it has its own column
        said = (f"{name.replace('_', ' ')} {_word(each)}" for name, each in shown.items())
        return first_line(", ".join(said), 240)
    return first_line(_word(plain), 240)


def _word(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "yes" if value else "no"
    return msgspec.json.encode(value).decode("utf-8", "replace")
