"""What a change would do, as rows."""

from __future__ import annotations

from sprocket.console.operations.values import ChangeLine, ChangeReport
from sprocket.console.views.changes import SHOWN_MAX, change_rows


def row(**line: object) -> dict[str, object]:
    report = ChangeReport(dry_run=True, changes=[ChangeLine(what="topic t", **line)])  # type: ignore[arg-type]
    return change_rows(report)[0]


def test_of_what_was_there_only_what_changes_is_shown() -> None:
    before, after = {"queues": 4, "permission": "rw"}, {"queues": 8, "permission": "rw"}
    assert row(before=before, after=after)["after"] == "queues 8"
    assert row(before=before, after=before)["after"] == "as it is"
    assert row(before=4, after=9) | {"id": 0} == {
        "id": 0, "what": "topic t", "broker": "", "before": "4", "after": "9",
    }  # fmt: skip


def test_what_goes_and_what_is_made_is_said() -> None:
    assert row(before={"queues": 4})["after"] == "gone"
    assert row(after={"queues": 4, "attributes": {}})["after"] == "queues 4"
    assert row()["after"] == "is done"


def test_a_long_report_is_cut() -> None:
    report = ChangeReport(dry_run=True, changes=[ChangeLine(what="x")] * (SHOWN_MAX + 5))
    assert len(change_rows(report)) == SHOWN_MAX
