"""An Iceberg table that is a folder of its own, without a catalog.

    metadata/v17.metadata.json     the table after its 17th change
    metadata/version-hint.text     17, or an older number after a crash

These names are those of Iceberg's file-system tables, so that Hadoop's catalog in Spark, DuckDB and
others open the folder. A change makes the next file, and only one writer can make it; so on disks
and HDFS two writers never both succeed. Object stores do not promise this; there, and where several
engines write, a catalog is right.

Source: "File System Tables" in Appendix of Iceberg's table spec, and HadoopTableOperations.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sprocket.base.errors import SprocketError
from sprocket.spark.pipelines.parts.folder import Folder

if TYPE_CHECKING:
    from pyiceberg.table import CommitTableResponse, Table
    from pyiceberg.table.metadata import TableMetadata
    from pyiceberg.table.update import TableRequirement, TableUpdate

_HINT = "metadata/version-hint.text"


class IcebergFolder:
    """What `pyiceberg` needs of a catalog to read and change one table.

    Args:
        storage: properties of its file system, such as s3.region.
    """

    def __init__(self, folder: Folder, storage: Mapping[str, str]) -> None:
        self._folder = folder
        self._storage = dict(storage)

    def exists(self) -> bool:
        """Whether the table has been created."""
        return self._folder.text(_name(1)) is not None or self._hint() > 0

    def create(self, metadata: TableMetadata) -> None:
        """Creates the table, unless another writer has."""
        self._write(metadata, 1)

    def load_table(self, identifier: Any = None) -> Table:
        """The table as it is now.

        Raises:
            SprocketError: there is none.
        """
        from pyiceberg.io import load_file_io
        from pyiceberg.table import Table
        from pyiceberg.table.metadata import TableMetadataUtil

        version, text = self._newest()
        path = self._folder.inner(_name(version))
        io = load_file_io(self._storage, path)
        name = self._folder.path.rpartition("/")[2] or "table"
        metadata = TableMetadataUtil.parse_raw(text)
        return Table(("folder", name), metadata, path, io, self)

    def commit_table(
        self,
        table: Table,
        requirements: tuple[TableRequirement, ...],
        updates: tuple[TableUpdate, ...],
    ) -> CommitTableResponse:
        """Makes the next version of the table.

        Raises:
            CommitFailedException: another writer changed it meanwhile.
        """
        from pyiceberg.exceptions import CommitFailedException
        from pyiceberg.table import CommitTableResponse
        from pyiceberg.table.metadata import TableMetadataUtil
        from pyiceberg.table.update import update_table_metadata

        version, text = self._newest()
        now = TableMetadataUtil.parse_raw(text)
        for one in requirements:
            one.validate(now)
        before = self._folder.inner(_name(version))
        made = update_table_metadata(now, updates, metadata_location=before)
        if not self._write(made, version + 1):
            raise CommitFailedException(f"{self._folder} was changed by another writer")
        return CommitTableResponse(
            metadata=made, metadata_location=self._folder.inner(_name(version + 1))
        )

    @staticmethod
    def supports_server_side_planning() -> bool:
        """`pyiceberg` asks this before a scan."""
        return False

    @staticmethod
    def _delete_old_metadata(io: Any, base: TableMetadata, metadata: TableMetadata) -> None:
        """`pyiceberg` calls this after a commit: removes versions that the newest does not list."""
        kept = {entry.metadata_file for entry in metadata.metadata_log}
        for entry in base.metadata_log:
            if entry.metadata_file not in kept:
                io.delete(entry.metadata_file)

    def _write(self, metadata: TableMetadata, version: int) -> bool:
        if not self._folder.create(_name(version), metadata.model_dump_json()):
            return False
        self._folder.replace_text(_HINT, str(version))
        return True

    # A crash between the two writes of a change leaves the hint one behind.
    def _newest(self) -> tuple[int, str]:
        version = max(1, self._hint())
        text = self._folder.text(_name(version))
        if text is None:
            raise SprocketError(
                f"{self._folder} has no {_name(version)}, so it is no Iceberg table"
            )
        while (newer := self._folder.text(_name(version + 1))) is not None:
            version, text = version + 1, newer
        return version, text

    def _hint(self) -> int:
        text = (self._folder.text(_HINT) or "").strip()
        return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else 0


def _name(version: int) -> str:
    return f"metadata/v{version}.metadata.json"
