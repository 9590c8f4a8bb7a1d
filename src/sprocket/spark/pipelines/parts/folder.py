"""Small files beside a pipeline's data, wherever Spark can write: a disk, HDFS, an object store.

A file is replaced as a whole: readers, and runs after a crash, find its old or its new content.
All access is through Hadoop's file systems, as that to Spark's own checkpoints is.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sprocket.base.errors import SprocketError, UsageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Folder of the files beside the data; Spark and others ignore names that begin with `_`.
HIDDEN = "_sprocket"
_BYTES_MAX = 64 * 1024 * 1024


class Folder:
    """A folder that Spark can reach.

    Args:
        session: the session whose file systems are used.
        path: a path, or a URI such as `s3a://bucket/orders`.
    """

    def __init__(self, session: SparkSession, path: str) -> None:
        if not path.strip():
            raise UsageError("a folder is needed, and its name is empty")
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
        place, unfinished = self._place(name), self._place(f"{name}.new")
        stream = self._files.create(unfinished, True)
        try:
            stream.write(bytearray(json.dumps(value, separators=(",", ":")).encode()))
            stream.hsync()
        finally:
            stream.close()
        rename = self._jvm.org.apache.hadoop.fs.Options.Rename
        how = self._gateway.new_array(rename, 1)
        how[0] = rename.OVERWRITE
        files = self._jvm.org.apache.hadoop.fs.FileContext.getFileContext(
            self._files.getUri(), self._settings
        )
        files.rename(unfinished, place, how)

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

    def _place(self, name: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(self.inner(name) if name else self.path)
