"""The file `epochFileCheckpoint` in the store's folder: the epochs of the log, in RocketMQ's form.

A new epoch is on the disk before the first record of it counts. `.bak` beside the file has the same
content, and not the version before, as RocketMQ's has: an old list would give the records of a new
epoch to the one before it, and another log would be taken for the same.

Source: EpochFileCache, CheckpointFile of RocketMQ 5.3.
"""

from __future__ import annotations

import logging

from sprocket.base.errors import StoreError
from sprocket.base.ports import Disk
from sprocket.replication.epochs import EpochList

logger = logging.getLogger(__name__)

FILE_NAME = "epochFileCheckpoint"


class EpochFile:
    """The epochs of one store's log.

    Attributes:
        epochs: the list, as it is on the disk.
    """

    __slots__ = ("_disk", "_is_loaded", "_path", "epochs")

    def __init__(self, disk: Disk, root: str) -> None:
        """
        Args:
            root: the folder of the store.
        """
        self._disk = disk
        self._path = f"{root}/{FILE_NAME}"
        self._is_loaded = False
        self.epochs = EpochList()

    def load(self, log_start: int, log_end: int) -> None:
        """Reads the list, once the store is open.

        Epochs that the log has no place for any more are dropped: a crash, or a cut, has made it
        shorter, or old files were deleted.

        Raises:
            StoreError: the file is broken, and its backup cannot be used either.
            OSError: the disk failed.
        """
        found = self._read()
        self._is_loaded = True
        self.epochs = found
        self._save(found.within(log_end).trimmed(log_start))

    def begin(self, epoch: int, log_start: int, log_end: int) -> None:
        """Begins an epoch as its master: the next record is its first one.

        The records of a log that had no epochs before become those of its first.

        Raises:
            ValueError: the epoch is not newer than the last one.
            OSError: the disk refuses it; nothing is changed.
        """
        self.add(epoch, log_end if self.epochs else log_start)

    def add(self, epoch: int, start: int) -> None:
        """Records that an epoch begins at a log offset. It is on the disk when this returns.

        Raises:
            ValueError: it is not newer than the last one, or begins before that.
            OSError: the disk refuses it; nothing is changed.
        """
        self._save(self.epochs.added(epoch, start))

    def cut(self, end: int) -> None:
        """Drops epochs without a record before `end`, after the log was cut there.

        Raises:
            OSError: the disk refuses it; nothing is changed.
        """
        self._save(self.epochs.cut(end))

    def trim(self, log_start: int) -> None:
        """Drops epochs whose records were all deleted.

        Raises:
            OSError: the disk refuses it; nothing is changed.
        """
        self._save(self.epochs.trimmed(log_start))

    def _read(self) -> EpochList:
        broken: StoreError | None = None
        for path in (self._path, f"{self._path}.bak"):
            raw = self._disk.read(path)
            if raw is None:
                continue
            try:
                found = EpochList.decode(raw)
            except StoreError as error:
                logger.error("%s is broken, its backup is used: %s", path, error)
                broken = broken or error
                continue
            if found:
                return found
        if broken is not None:
            raise StoreError(
                f"{self._path} and its backup cannot be used: {broken}. Remove both, with the "
                "log's folder, so that this broker copies the log anew"
            )
        return EpochList()

    def _save(self, epochs: EpochList) -> None:
        assert self._is_loaded, "a list is read before it is written"
        if epochs == self.epochs:
            return
        if epochs:
            raw = epochs.encode()
            self._disk.replace(self._path, raw, backup=False)
            self._disk.replace(f"{self._path}.bak", raw, backup=False)
        else:  # RocketMQ reads the backup if the file is empty or missing
            self._disk.remove(f"{self._path}.bak")
            self._disk.remove(self._path)
        self.epochs = epochs
