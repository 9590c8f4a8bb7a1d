"""Why nothing can be appended to a store: the only place that decides this.

At most one reason counts at a time. A closed store stays closed, a disk that has failed is not used
again before the next start, and a full disk may have room later. So the reason is the first of
these that holds: closed, failed, not open yet, disk full. The log of a slave gets its bytes from a
master: if none of these holds, it still accepts no messages of its own.

Source of the name: RunningFlags of RocketMQ 5.x, which keeps such reasons as bits.
"""

from __future__ import annotations

from sprocket.base.errors import ClosedError, DiskFull, StoreError


class RunningFlags:
    """The state of one store; the parts that notice a change report it here.

    Attributes:
        refusal: the error that an append raises now; None while messages are accepted. A plain
            attribute, because every append reads it.
        blocked: the same for bytes that are copied from a master.

    Args:
        is_copy: whether the log is a copy of a master's.
    """

    __slots__ = (
        "_disk_full",
        "_failure",
        "_is_copy",
        "_is_open",
        "blocked",
        "is_closed",
        "refusal",
    )

    def __init__(self, *, is_copy: bool = False) -> None:
        self._is_copy = is_copy
        self.is_closed = False
        self.blocked: Exception | None = None
        self._failure: StoreError | None = None
        self._is_open = False
        self._disk_full: DiskFull | None = None
        self.refusal: Exception | None = None
        self._decide()

    @property
    def has_failed(self) -> bool:
        """Whether the disk failed: what it holds of writes since the last good sync is unknown."""
        return self._failure is not None

    @property
    def is_full(self) -> bool:
        """Whether messages are refused because the disk is full, and for no other reason."""
        return self.blocked is not None and self.blocked is self._disk_full

    def open(self) -> None:
        """Reports that the store is recovered: messages are accepted, unless the disk is full."""
        self._is_open = True
        self._decide()

    def fill(self, error: DiskFull) -> None:
        """Reports that the disk is full; messages are refused with this error until `free`."""
        self._disk_full = error
        self._decide()

    def free(self) -> None:
        """Reports that the disk has room again."""
        self._disk_full = None
        self._decide()

    def fail(self, error: StoreError) -> None:
        """Reports that the disk failed; messages are refused with this error until `close`."""
        self._failure = error
        self._decide()

    def copy(self, is_copy: bool) -> None:
        """Reports that the log is a copy of a master's from now on, or no longer one."""
        self._is_copy = is_copy
        self._decide()

    def close(self) -> None:
        """Reports that the store is closed, for good."""
        self.is_closed = True
        self._decide()

    def _decide(self) -> None:
        if self.is_closed:
            self.blocked = ClosedError("the store is closed")
        elif self._failure is not None:
            self.blocked = self._failure
        elif not self._is_open:
            self.blocked = ClosedError("the store is not open")
        else:
            self.blocked = self._disk_full
        self.refusal = self.blocked
        if self.blocked is None and self._is_copy:
            self.refusal = StoreError("the log is a copy of a master's: messages go to the master")
