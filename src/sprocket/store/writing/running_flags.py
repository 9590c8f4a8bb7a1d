"""Why nothing can be appended to a store: the only place that decides this.

At most one reason counts at a time. A closed store stays closed, a disk that has failed is not used
again before the next start, and a full disk may have room later. So the reason is the first of
these that holds: closed, failed, not open yet, disk full.

Source of the name: RunningFlags of RocketMQ 5.x, which keeps such reasons as bits.
"""

from __future__ import annotations

from sprocket.base.errors import ClosedError, DiskFull, StoreError


class RunningFlags:
    """The state of one store; the parts that notice a change report it here.

    Attributes:
        refusal: the error that an append raises now; None while messages are accepted. A plain
            attribute, because every append reads it.
    """

    __slots__ = ("_disk_full", "_failure", "_is_open", "is_closed", "refusal")

    def __init__(self) -> None:
        self.is_closed = False
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
        return self.refusal is not None and self.refusal is self._disk_full

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

    def close(self) -> None:
        """Reports that the store is closed, for good."""
        self.is_closed = True
        self._decide()

    def _decide(self) -> None:
        if self.is_closed:
            self.refusal = ClosedError("the store is closed")
        elif self._failure is not None:
            self.refusal = self._failure
        elif not self._is_open:
            self.refusal = ClosedError("the store is not open")
        else:
            self.refusal = self._disk_full
