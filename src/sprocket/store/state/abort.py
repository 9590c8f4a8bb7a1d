"""The file `abort`: it exists while a store is open, so a start that finds it follows a crash.

Source: StorePathConfigHelper.getAbortFile and DefaultMessageStore.createTempFile of RocketMQ 5.x.
"""

from __future__ import annotations

from sprocket.base.ports import Disk


class AbortFile:
    """The file of one store."""

    __slots__ = ("_disk", "_path")

    def __init__(self, disk: Disk, root: str) -> None:
        self._disk = disk
        self._path = f"{root}/abort"

    def exists(self) -> bool:
        """Whether the store is open, or was not closed in order."""
        return self._disk.size(self._path) is not None

    def create(self) -> None:
        """Makes the file, if it is missing.

        Raises:
            OSError: the disk refuses it.
        """
        if not self.exists():
            self._disk.replace(self._path, b"0", backup=False)

    def remove(self) -> None:
        """Removes the file: the store is closed in order.

        Raises:
            OSError: the disk refuses it.
        """
        self._disk.remove(self._path)
