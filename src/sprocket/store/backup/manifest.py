"""The list of what a backup has: the file `backup.json` in its folder.

    {"form":1,"fileBytes":bytes of a log file,"start":log offset,"end":log offset,
     "settled":log offset,"logs":{name:CRC-32},
     "states":[{"takenMs":ms,"start":log offset,"end":log offset,
     "files":{name:CRC-32}}]}

It is replaced last, so a backup that was interrupted is the one before.
"""

from __future__ import annotations

import msgspec

from sprocket.base.errors import StoreError
from sprocket.base.ports import Disk
from sprocket.store.log.segments import NAME_DIGITS

#: The only form there is; a later version raises it if an older one could not read its backups.
FORM = 1
FILE_NAME = "backup.json"


class StateEntry(msgspec.Struct, frozen=True, rename="camel"):
    """The state files as they were at one time, in the folder `states/<taken_ms>`.

    Attributes:
        taken_ms: when they were read.
        start, end: where the log began and ended, or a little later: nothing in the files leads
            behind the end, and they may have forgotten what is before the start.
        files: their names, with the checksums of their content.
    """

    taken_ms: int
    start: int
    end: int
    files: dict[str, int]

    def folder(self, backup: str) -> str:
        """Where the files are."""
        return f"{backup}/states/{self.taken_ms}"


class Manifest(msgspec.Struct, frozen=True, rename="camel"):
    """What a backup has.

    Attributes:
        form: see `FORM`.
        file_bytes: size of a file of the log.
        start, end: the log offsets at which the log begins and ends.
        settled: log offset up to which no broker of a group takes anything back.
        logs: the files of the log, with the checksums of what the backup has of them: a record's
            own checksum covers its body only.
        states: the state files, oldest first.
    """

    form: int
    file_bytes: int
    start: int
    end: int
    settled: int
    logs: dict[str, int]
    states: tuple[StateEntry, ...] = ()


def log_folder(backup: str) -> str:
    """Where a backup has the files of the log."""
    return f"{backup}/commitlog"


def read_manifest(disk: Disk, backup: str) -> Manifest | None:
    """The list of a backup; None if there is no backup in this folder.

    Raises:
        StoreError: the file is broken, or a later version of Sprocket wrote it.
    """
    path = f"{backup}/{FILE_NAME}"
    raw = disk.read(path)
    if raw is None:
        return None
    try:
        manifest = msgspec.json.decode(raw, type=Manifest)
    except msgspec.MsgspecError as error:
        raise StoreError(f"{path} is broken: {error}") from error
    if manifest.form != FORM:
        raise StoreError(f"{path} has form {manifest.form}; this version reads form {FORM}")
    if (fault := _fault(manifest)) is not None:
        raise StoreError(f"{path} is broken: {fault}")
    return manifest


def _fault(manifest: Manifest) -> str | None:
    """What is wrong with a list; None if nothing is."""
    if manifest.file_bytes < 0 or not 0 <= manifest.start <= manifest.settled <= manifest.end:
        return "its numbers contradict each other"
    for name in manifest.logs:
        if len(name) != NAME_DIGITS or not (name.isascii() and name.isdecimal()):
            return f"{name[:80]!r} is no file of a log"
    for entry in manifest.states:
        for name in entry.files:
            # A restore writes files of these names: none of them may lead out of its folder.
            if name in ("", ".", "..") or any(each in name for each in "/\\\0"):
                return f"{name[:80]!r} is no state file"
    return None


def write_manifest(disk: Disk, backup: str, manifest: Manifest) -> None:
    """Replaces the list of a backup.

    Raises:
        OSError: the disk refuses it; the old list is still there.
    """
    raw = msgspec.json.format(msgspec.json.encode(manifest), indent=1)
    disk.replace(f"{backup}/{FILE_NAME}", raw, backup=False)
