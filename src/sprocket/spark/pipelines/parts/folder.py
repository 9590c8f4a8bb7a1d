"""Small files beside a pipeline's data, wherever Spark can write: a disk, HDFS, an object store.

A file is replaced as a whole: readers, and runs after a crash, find its old or its new content.
All access is through Hadoop's file systems, as that to Spark's own checkpoints is.
"""

from __future__ import annotations

import json
import os
import re
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from sprocket.base.errors import SprocketError, UsageError
from sprocket.base.suggestions import shown

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Folder of the files beside the data; Spark and others ignore names that begin with `_`.
HIDDEN = "_sprocket"
_BYTES_MAX = 64 * 1024 * 1024
#: Windows has backslashes between folders.
_TAKEN_OTHERWISE = re.compile(
    r"[*?\[\]{}\0-\x1f]|%[0-9a-fA-F]{2}" + ("" if os.sep == "\\" else r"|\\")
)


def check_folder(path: str) -> None:
    """Raises UsageError for a folder that not all who read it would find.

    Spark takes brackets and stars for patterns, and the library of Delta opens `50%25` as `50%`.
    """
    if not path.strip():
        raise UsageError("a folder is needed, and its name is empty")
    if found := _TAKEN_OTHERWISE.search(path):
        raise UsageError(
            f"the folder {shown(path)} has {shown(found[0])} in its name, which Spark and the "
            "libraries of tables take for something else"
        )


class FileInFolder(NamedTuple):
    """A file in a folder.

    Attributes:
        name: its path from the folder on.
        size: bytes.
        changed_ms: when it was last written, ms since 1970.
    """

    name: str
    size: int
    changed_ms: int


class Folder:
    """A folder that Spark can reach.

    Args:
        session: the session whose file systems are used.
        path: a path, or a URI such as `s3a://bucket/orders`.
    """

    def __init__(self, session: SparkSession, path: str) -> None:
        check_folder(path)
        made: Any = session
        if not hasattr(made, "_jvm"):
            raise UsageError("pipelines need a session of this process, not a remote one")
        self.path = path.rstrip("/") or "/"
        self._jvm: Any = made._jvm
        self._gateway: Any = made.sparkContext._gateway
        self._settings: Any = made._jsc.hadoopConfiguration()
        self._files: Any = self._place("").getFileSystem(self._settings)
        if self._files.getScheme() == "file" and "://" not in path:
            # Java keeps the working directory in which it was started; ours may have changed.
            self.path = str(Path(path).absolute())
            check_folder(self.path)

    def __str__(self) -> str:
        return self.path

    def inner(self, name: str) -> str:
        """The path of a name in the folder."""
        return f"{self.path}/{name}"

    def read(self, name: str) -> dict[str, Any] | None:
        """The JSON object in a file; None if there is no such file.

        Raises:
            SprocketError: the file is too large, or holds no JSON object.
        """
        place = self._place(name)
        if not self._files.exists(place):
            return None
        if self._files.getFileStatus(place).getLen() > _BYTES_MAX:
            raise SprocketError(f"{self.inner(name)} is too large to be what it should be")
        stream = self._files.open(place)
        try:
            content = self._jvm.org.apache.commons.io.IOUtils.toByteArray(stream)
        finally:
            stream.close()
        try:
            found = json.loads(bytes(content))
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise SprocketError(f"{self.inner(name)} holds no JSON object")
        return found

    def replace(self, name: str, value: dict[str, Any]) -> None:
        """Replaces the content of a file by a JSON object; creates the file if it is missing."""
        self.replace_text(name, json.dumps(value, separators=(",", ":")))

    def names(self, inside: str = "") -> list[str]:
        """The names in the folder but hidden ones, sorted; empty if it does not exist.

        Args:
            inside: a folder in it whose names are wanted.
        """
        place = self._place(inside)
        if not self._files.exists(place):
            return []
        found = [one.getPath().getName() for one in self._files.listStatus(place)]
        return sorted(name for name in found if not name.startswith(("_", ".")))

    @property
    def is_local(self) -> bool:
        """Whether it lies on a disk of this machine."""
        return bool(self._files.getScheme() == "file")

    def files(self, inside: str) -> list[FileInFolder]:
        """All files below a folder in it, at any depth, sorted; empty if it does not exist."""
        place = self._place(inside)
        if not self._files.exists(place):
            return []
        top = self._files.makeQualified(place).toUri().getPath().rstrip("/")
        found, listed = [], self._files.listFiles(place, True)
        while listed.hasNext():
            one = listed.next()
            name = inside + one.getPath().toUri().getPath()[len(top) :]
            found.append(FileInFolder(name, one.getLen(), one.getModificationTime()))
        return sorted(found)

    def tail(self, file: FileInFolder, size: int) -> bytes:
        """The last bytes of a file, `size` at most."""
        stream = self._files.open(self._place(file.name))
        try:
            stream.seek(max(0, file.size - size))
            return bytes(self._jvm.org.apache.commons.io.IOUtils.toByteArray(stream))
        finally:
            stream.close()

    def text(self, name: str) -> str | None:
        """The text in a small file; None if there is no such file."""
        place = self._place(name)
        if not self._files.exists(place):
            return None
        size = self._files.getFileStatus(place).getLen()
        return self.tail(FileInFolder(name, size, 0), _BYTES_MAX).decode()

    def create(self, name: str, text: str) -> bool:
        """Makes a file with a text, whole or not at all; False if there is one of that name.

        On disks and HDFS only one of several writers succeeds. Most object stores do not promise
        this.
        """
        if self.is_local:
            return _linked(self._local(name), text)
        place, unfinished = self._place(name), self._place(f"{name}.{uuid.uuid4().hex}.new")
        self._write(unfinished, text)
        try:
            self._rename(unfinished, place, replaces=False)
        except Exception as error:  # py4j wraps what Java throws
            is_there = self._files.exists(place)
            self._files.delete(unfinished, False)
            if not is_there:
                raise SprocketError(f"{self.inner(name)} cannot be made: {error}") from error
            return False
        return True

    def replace_text(self, name: str, text: str) -> None:
        """Replaces the content of a file by a text; creates the file if it is missing."""
        unfinished = self._place(f"{name}.new")
        self._write(unfinished, text)
        self._rename(unfinished, self._place(name), replaces=True)

    def move(self, old: str, new: str) -> None:
        """Gives a file another path; its folder must exist. Object stores copy it."""
        if not self._files.rename(self._place(old), self._place(new)):
            raise SprocketError(f"{self.inner(old)} cannot be moved to {self.inner(new)}")

    def remove(self, name: str) -> None:
        """Removes a file, or a folder with all that is in it."""
        self._files.delete(self._place(name), True)

    def _local(self, name: str) -> Path:
        return Path(self._files.makeQualified(self._place(name)).toUri().getPath())

    def _write(self, place: Any, text: str) -> None:
        stream = self._files.create(place, True)
        try:
            stream.write(bytearray(text.encode()))
            stream.hsync()
        finally:
            stream.close()

    def _rename(self, old: Any, new: Any, *, replaces: bool) -> None:
        rename = self._jvm.org.apache.hadoop.fs.Options.Rename
        how = self._gateway.new_array(rename, 1)
        how[0] = rename.OVERWRITE if replaces else rename.NONE
        files = self._jvm.org.apache.hadoop.fs.FileContext.getFileContext(
            self._files.getUri(), self._settings
        )
        files.rename(old, new, how)

    def _place(self, name: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(self.inner(name) if name else self.path)


# Java's rename on a disk looks for the target first and renames then; a link does both at once.
def _linked(path: Path, text: str) -> bool:
    """Makes a file on a disk, whole or not at all; False if there is one of that name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        with unfinished.open("x", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        os.link(unfinished, path)
    except FileExistsError:
        return False
    finally:
        unfinished.unlink(missing_ok=True)
    return True
