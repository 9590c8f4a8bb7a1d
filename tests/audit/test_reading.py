"""Files of audit logs are read again in the order of time."""

from __future__ import annotations

from pathlib import Path

import pytest

from sprocket.audit.entries import AuditEntry, time_text
from sprocket.audit.reading import concerns, entries_in
from sprocket.base.errors import UsageError


def entry(ms: int, **named: object) -> AuditEntry:
    return AuditEntry(time_text(ms), "b", "", "", "", "X", 1, dict(named), 0)


def test_the_files_of_several_servers_are_merged_by_time(tmp_path: Path) -> None:
    for folder, name, times in (
        ("broker", "audit.jsonl.10", (1, 4)), ("broker", "audit.jsonl.2", (5,)),
        ("broker", "audit.jsonl", (9,)), ("nameserver", "audit.jsonl", (2, 7)),
    ):  # fmt: skip
        (tmp_path / folder).mkdir(exist_ok=True)
        content = b"".join(entry(ms).encode() for ms in times)
        (tmp_path / folder / name).write_bytes(content + b'{"time":"cut\n')
    (tmp_path / "broker" / "audit.jsonl.old").write_text("not one of them")
    found = [each.time for each in entries_in(tmp_path)]
    assert found == [time_text(ms) for ms in (1, 2, 4, 5, 7, 9)]
    one = entries_in(tmp_path / "broker" / "audit.jsonl")
    assert [each.time for each in one] == [time_text(9)]


def test_where_there_is_none_that_is_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no file audit\.jsonl"):
        list(entries_in(tmp_path))
    with pytest.raises(UsageError, match="there is no audit log"):
        list(entries_in(tmp_path / "nowhere"))


def test_what_an_entry_concerns() -> None:
    assert concerns(entry(1, topic="t"), "t")
    assert concerns(entry(1, topics=["a", "t"]), "t")
    assert not concerns(entry(1, topic="tt"), "t")
