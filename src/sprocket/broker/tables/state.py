"""The broker's tables in their files: loaded once, saved while they change and at the end.

What an operator is told is done (a topic, a group) is saved by then. Offsets and the
progress of delayed messages change all the time and are saved in rounds, so a crash may bring back
positions that are some seconds old: messages are then consumed again, never lost.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from sprocket.base.deadline import Deadline
from sprocket.base.errors import ClosedError, StoreError
from sprocket.base.ports import Disk
from sprocket.broker.dispatch import Endpoints
from sprocket.protocol.command import Command
from sprocket.remoting.endpoints import Endpoint, EventualResponse, Response
from sprocket.remoting.transport import Peer
from sprocket.store.state.snapshot import Snapshot
from sprocket.store.store import Store

logger = logging.getLogger(__name__)

#: The least time between two saves of one file because something changed, s.
_SAVE_GAP_SECONDS = 0.05
#: Nor begins one sooner than so many times what the last one took: nothing else happens meanwhile.
_SAVE_GAP_TIMES = 5
#: How long after a save that the disk refused it is tried again, s.
_AGAIN_SECONDS = 5.0
#: How long a save waits for the log to be on the disk, s.
_FLUSH_SECONDS = 5.0


class StateTable(Protocol):
    """What can be kept in a state file."""

    def to_json(self) -> dict[str, Any]:
        """What the file is to hold of it."""
        ...

    def load(self, state: Mapping[str, Any]) -> None:
        """Takes over what a file holds."""
        ...


class StateFile:
    """A table and its file.

    Attributes:
        is_behind: whether the last save failed, so that it is to be tried again.
    """

    __slots__ = ("_again", "_next_at", "_snapshot", "_table", "_timer", "_waiting", "is_behind")

    def __init__(self, disk: Disk, path: str, table: StateTable) -> None:
        self._snapshot = Snapshot(disk, path)
        self._table = table
        #: When the next save because of a change may begin.
        self._next_at = -math.inf
        self._timer: asyncio.TimerHandle | None = None
        #: When a change is tried again that the disk refused.
        self._again: asyncio.TimerHandle | None = None
        self._waiting: list[asyncio.Future[None]] = []
        self.is_behind = False

    def load(self) -> None:
        """Fills the table from the file, or from its backup if it is broken.

        Raises:
            StoreError: both are broken, or hold something else.
        """
        state = self._snapshot.load()
        try:
            self._table.load(state)
        except (msgspec.MsgspecError, ValueError, TypeError) as error:
            raise StoreError(f"{self._snapshot.path} is no such table: {error}") from error

    def state(self) -> dict[str, Any]:
        """The table as it is now."""
        return self._table.to_json()

    def changed(self) -> None:
        """Saves now, or in a moment if it was saved a moment ago: a storm costs a few saves."""
        if self._timer is not None:
            return
        loop = asyncio.get_running_loop()
        wait = self._next_at - loop.time()
        if wait <= 0:
            self._save_change()
        else:
            self._timer = loop.call_later(wait, self._save_change)

    def _save_change(self) -> None:
        """Saves; a disk that refuses is asked again until it does not."""
        self.save()
        if self.is_behind:
            self._again = asyncio.get_running_loop().call_later(_AGAIN_SECONDS, self._save_change)

    @property
    def is_due(self) -> bool:
        """Whether a change is not saved yet."""
        return self._timer is not None

    async def saved(self) -> None:
        """Returns when the changes so far are saved, or the disk has refused them."""
        if self._timer is not None:
            waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(waiting)
            await waiting

    def save(self, state: Mapping[str, Any] | None = None) -> None:
        """Writes the table down. A disk that refuses is logged, and is to be tried again.

        Args:
            state: how the table was at some time, if not as it is now.

        Raises:
            UsageError: it has not been loaded.
        """
        self.close()
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            self._snapshot.save(self.state() if state is None else state)
            self.is_behind = False
        except OSError as error:
            self.is_behind = True
            logger.error("%s cannot be saved: %s", self._snapshot.path, error)
        ended = loop.time()
        self._next_at = ended + max(_SAVE_GAP_SECONDS, (ended - began) * _SAVE_GAP_TIMES)
        for waiting in self._waiting:
            if not waiting.done():
                waiting.set_result(None)
        self._waiting.clear()

    def close(self) -> None:
        """Saves nothing any more unless it is told to."""
        for timer in (self._timer, self._again):
            if timer is not None:
                timer.cancel()
        self._timer = self._again = None


def once_saved(answers: Endpoints, *files: StateFile) -> Endpoints:
    """The same answers, each given when what it changed in these files is saved."""

    def waiting(answer: Endpoint) -> Endpoint:
        def answered(command: Command, peer: Peer) -> EventualResponse:
            outcome = answer(command, peer)
            due = [file for file in files if file.is_due]
            return _after_saves(outcome, due) if due else outcome

        return answered

    return {code: waiting(answer) for code, answer in answers.items()}


async def _after_saves(outcome: EventualResponse, due: Sequence[StateFile]) -> Response:
    for file in due:
        await file.saved()
    return await outcome if isinstance(outcome, Awaitable) else outcome


class ChangingTable(Protocol):
    """A table that changes all the time."""

    is_changed: bool


class OffsetSaver:
    """Saves a table of positions in rounds.

    A position is saved only once the log is on the disk up to where it was when the position was
    noted: after a crash no saved position points at messages that are gone.
    """

    def __init__(self, file: StateFile, positions: ChangingTable, store: Store) -> None:
        self._file = file
        self._positions = positions
        self._store = store

    async def run(self, pause_ms: Callable[[], int]) -> None:
        """Saves after each pause if something changed, until cancelled."""
        while True:
            await asyncio.sleep(pause_ms() / 1000)
            await self.save()

    async def save(self) -> None:
        """Saves now what has changed, as soon as the log allows it."""
        if not self._positions.is_changed and not self._file.is_behind:
            return
        self._positions.is_changed = False
        state = self._file.state()
        if await self._store.flushed.reach(self._store.log_end, Deadline.after(_FLUSH_SECONDS)):
            self._file.save(state)
        else:
            self._positions.is_changed = True

    async def save_at_once(self) -> None:
        """Saves how it is now, without waiting for the log's own flush; if the disk lets it."""
        self._positions.is_changed = False
        state = self._file.state()
        try:
            await self._store.sync()
        except (StoreError, ClosedError) as error:
            self._positions.is_changed = True
            logger.error("a position cannot be saved: %s", error)
        else:
            self._file.save(state)
