"""Reads the files of audit logs again, the oldest lines first."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from pathlib import Path

import msgspec

from sprocket.audit.audit_log import FILE
from sprocket.audit.entries import AuditEntry
from sprocket.base.errors import UsageError

_decoder = msgspec.json.Decoder(AuditEntry)


def entries_in(place: Path) -> Iterator[AuditEntry]:
    """All entries of a file, or of all audit logs in a folder, by their times.

    Lines that cannot be read, such as one that a crash cut, are left out.

    Raises:
        UsageError: there is no such file or folder, or no audit log in it.
        OSError: a file cannot be read.
    """
    if place.is_file():
        return _of_file(place)
    if not place.is_dir():
        raise UsageError(f"there is no audit log at {place}")
    logs = sorted(each.parent for each in place.rglob(FILE))
    if not logs:
        raise UsageError(f"there is no file {FILE} in {place}")
    return heapq.merge(*(_of_folder(each) for each in logs), key=lambda entry: entry.time)


def _of_folder(folder: Path) -> Iterator[AuditEntry]:
    numbered = []
    for each in folder.glob(f"{FILE}.*"):
        number = each.name.removeprefix(f"{FILE}.")
        if number.isdecimal():
            numbered.append((int(number), each))
    for _, each in sorted(numbered, reverse=True):
        yield from _of_file(each)
    yield from _of_file(folder / FILE)


def _of_file(path: Path) -> Iterator[AuditEntry]:
    with path.open("rb") as file:
        for line in file:
            if (entry := entry_in(line)) is not None:
                yield entry


def entry_in(line: bytes) -> AuditEntry | None:
    """The entry of a line, or of a message of an audit topic; None if it is none."""
    try:
        return _decoder.decode(line)
    except msgspec.MsgspecError:
        return None


def concerns(entry: AuditEntry, name: str) -> bool:
    """Whether a topic, group or anything else of this name is among what an entry names."""
    return any(
        value == name or (isinstance(value, list) and name in value)
        for value in entry.named.values()
    )
