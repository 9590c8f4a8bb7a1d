"""What makes entries."""

from __future__ import annotations

from sprocket.audit.entries import AuditEntry
from sprocket.audit.recorder import AuditRecorder
from sprocket.testing.clock import ManualClock


class Kept(AuditRecorder):
    def __init__(self) -> None:
        super().__init__("broker-a", ManualClock(1_700_000_000_123))
        self.entries: list[AuditEntry] = []

    def put(self, entry: AuditEntry) -> None:
        self.entries.append(entry)


def test_entries_have_the_time_and_the_server() -> None:
    kept = Kept()
    kept.record(
        user="ann", address="10.0.0.7:1", client="c", request="DELETE", code=215,
        named={"topic": "orders"}, result=0, remark=None, times=3,
    )  # fmt: skip
    kept.record_event("LEADS", {"epoch": 7})
    by_user, by_itself = kept.entries
    assert by_user.time == by_itself.time == "2023-11-14T22:13:20.123Z"
    assert (by_user.server, by_user.user, by_user.times) == ("broker-a", "ann", 3)
    assert (by_itself.request, by_itself.code, by_itself.address) == ("LEADS", 0, "")
    assert by_itself.named == {"epoch": 7}
