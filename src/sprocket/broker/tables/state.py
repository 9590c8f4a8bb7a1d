"""State files: the broker's tables, loaded once, saved after changes and when the broker stops.

A change by an operator (of a topic, a group, an offset) is saved before the reply. Offsets that
consumers commit and the progress of delayed messages change all the time and are saved
periodically. So after a crash they may be some seconds old: messages are then consumed again, never
lost.
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
from sprocket.store.config import FOLDER_SETTINGS
from sprocket.store.state.snapshot import Snapshot, StateDraft
from sprocket.store.store import Store

logger = logging.getLogger(__name__)

#: The least pause between two saves of one file because of changes, s.
_SAVE_GAP_SECONDS = 0.05
#: The pause is also at least so many times the duration of the last save, which takes CPU.
_SAVE_GAP_TIMES = 5
#: Pause before a failed save is tried again, s.
_AGAIN_SECONDS = 5.0
#: How long a save waits for the log to be flushed, s.
_FLUSH_SECONDS = 5.0


class StateTable(Protocol):
    """A table that can be kept in a state file."""

    def to_json(self) -> Mapping[str, Any]:
        """The table as JSON for its file. Later changes must not show in it: it is encoded in
        several turns of the event loop."""
        ...

    def load(self, state: Mapping[str, Any]) -> None:
        """Loads the table from the JSON of its file."""
        ...


class StateFile:
    """A table and its file.

    Attributes:
        is_behind: whether the last save failed, so that it must be tried again.
        failure: why the last save failed.
        changes: how many changes were reported.
    """

    __slots__ = (
        "_again", "_next_at", "_snapshot", "_table", "_timer", "_waiting", "_work", "changes",
        "failure", "is_behind",
    )  # fmt: skip

    def __init__(
        self, disk: Disk, path: str, table: StateTable, *, is_secret: bool = False
    ) -> None:
        """
        Args:
            is_secret: as `Snapshot` has it.
        """
        self._snapshot = Snapshot(disk, path, is_secret=is_secret)
        self._table = table
        #: Time of the loop at which the next save because of a change may begin.
        self._next_at = -math.inf
        self._timer: asyncio.TimerHandle | None = None
        #: Timer that tries a failed save again.
        self._again: asyncio.TimerHandle | None = None
        self._waiting: list[asyncio.Future[None]] = []
        #: The save of a large table that is going on.
        self._work: asyncio.Task[None] | None = None
        self.is_behind = False
        self.failure = ""
        self.changes = 0

    def load(self) -> None:
        """Fills the table from the file, or from its backup if it is broken.

        Raises:
            StoreError: both are broken or have another form, or the disk refuses them.
        """
        try:
            state = self._snapshot.load()
        except OSError as error:
            raise StoreError(f"cannot read {self.path}: {error}; {FOLDER_SETTINGS}") from error
        try:
            self._table.load(state)
        except (msgspec.MsgspecError, ValueError, TypeError) as error:
            raise StoreError(f"{self._snapshot.path} is no such table: {error}") from error

    @property
    def path(self) -> str:
        """Where the file is."""
        return self._snapshot.path

    def state(self) -> Mapping[str, Any]:
        """The table as it is now."""
        return self._table.to_json()

    def changed(self) -> None:
        """Saves the table now, or after a pause if it was saved just before: many changes in a
        short time cause only a few saves."""
        self.changes += 1
        if self._timer is not None:
            return
        loop = asyncio.get_running_loop()
        wait = self._next_at - loop.time()
        if wait <= 0 and self._work is None:
            self._save_change()
        else:
            wait = wait if wait > 0 else _SAVE_GAP_SECONDS
            self._timer = loop.call_later(wait, self._save_change)

    def _save_change(self) -> None:
        """Saves the table, and tries again later if that fails or a save is going on."""
        loop = asyncio.get_running_loop()
        if self._work is not None:
            self._timer = loop.call_later(_SAVE_GAP_SECONDS, self._save_change)
            return
        self.close()
        self._begin(self.state(), has_changed=True)

    @property
    def is_due(self) -> bool:
        """Whether a change is not saved yet."""
        return self._timer is not None or self._work is not None

    async def saved(self) -> None:
        """Returns when the changes so far are saved, or the save has failed."""
        if self._timer is not None:
            waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(waiting)
            await waiting
        elif self._work is not None:
            await asyncio.wait([self._work])

    async def written(self) -> None:
        """Returns when the changes so far are in the file.

        Raises:
            StoreError: the disk refuses it; saving is tried again.
        """
        await self.saved()
        if self.is_behind:
            raise StoreError(self.failure)

    async def idle(self) -> None:
        """Returns when no save is going on."""
        while self._work is not None:
            await asyncio.wait([self._work])

    # A large table is encoded step by step and written in a thread, so that no save holds the event
    # loop. All of that works on one picture of the table. What changes meanwhile sets the timer, so
    # it is saved next. Saves still take CPU, so the next one waits a multiple of this one's
    # duration. Those who wait for the save are released even if it fails: the error is in the log,
    # and their change is in force.
    async def save_in_turns(self, state: Mapping[str, Any]) -> None:
        """Writes a state to the file; `is_behind` shows a failure. No other save may be going on.

        Raises:
            UsageError: the table has not been loaded.
        """
        self.close()
        self._begin(state)
        await self.idle()

    def save(self) -> None:
        """Writes the table to the file at once, when the broker stops; `is_behind` shows a failure.

        Raises:
            UsageError: the table has not been loaded.
        """
        self.close()
        draft = self._snapshot.draft(self.state())
        while not draft.step():
            pass
        self._write(draft, asyncio.get_running_loop().time())

    def _begin(self, state: Mapping[str, Any], *, has_changed: bool = False) -> None:
        began = asyncio.get_running_loop().time()
        draft = self._snapshot.draft(state)
        if draft.step():
            self._write(draft, began)
            self._try_again(has_changed)
        else:
            # Who waits from now on waits for a change that this picture does not show.
            waiting, self._waiting = self._waiting, []
            self._work = asyncio.create_task(self._go_on(draft, began, waiting, has_changed))

    async def _go_on(
        self,
        draft: StateDraft,
        began: float,
        waiting: Sequence[asyncio.Future[None]],
        has_changed: bool,
    ) -> None:
        try:
            while not draft.step():  # noqa: ASYNC110 - each step is a part of the work
                await asyncio.sleep(0)
            await self._snapshot.write_in_background(draft.raw)
            self.is_behind = False
        except OSError as error:
            self._failed(error)
        finally:
            self._work = None
            self._ended(began, waiting)
        self._try_again(has_changed)

    def _write(self, draft: StateDraft, began: float) -> None:
        try:
            self._snapshot.write(draft.raw)
            self.is_behind = False
        except OSError as error:
            self._failed(error)
        waiting, self._waiting = self._waiting, []
        self._ended(began, waiting)

    def _failed(self, error: OSError) -> None:
        self.is_behind = True
        self.failure = f"{self._snapshot.path} cannot be saved: {error}"
        logger.error("%s", self.failure)

    def _ended(self, began: float, waiting: Sequence[asyncio.Future[None]]) -> None:
        ended = asyncio.get_running_loop().time()
        self._next_at = ended + max(_SAVE_GAP_SECONDS, (ended - began) * _SAVE_GAP_TIMES)
        for each in waiting:
            if not each.done():
                each.set_result(None)

    def _try_again(self, has_changed: bool) -> None:
        if self.is_behind and has_changed and self._again is None:
            loop = asyncio.get_running_loop()
            self._again = loop.call_later(_AGAIN_SECONDS, self._save_change)

    def close(self) -> None:
        """Cancels the saves that are due; after this only `save` writes the file."""
        for timer in (self._timer, self._again):
            if timer is not None:
                timer.cancel()
        self._timer = self._again = None


def once_saved(answers: Endpoints, *files: StateFile, reports_failure: bool = False) -> Endpoints:
    """The same endpoints, whose replies wait until their changes to these files are saved.

    Args:
        reports_failure: a request whose change cannot be saved is answered with an error. Otherwise
            the failure is only logged, and saving is tried again.
    """

    def waiting(answer: Endpoint) -> Endpoint:
        def answered(command: Command, peer: Peer) -> EventualResponse:
            before = [file.changes for file in files]
            outcome = answer(command, peer)
            if isinstance(outcome, Awaitable) or any(
                file.is_due or file.is_behind for file in files
            ):
                return _after_saves(outcome, files, before if reports_failure else None)
            return outcome

        return answered

    return {code: waiting(answer) for code, answer in answers.items()}


async def _after_saves(
    outcome: EventualResponse, files: Sequence[StateFile], before: Sequence[int] | None
) -> Response:
    """The outcome, when the files are saved.

    Args:
        before: numbers of the files' changes before the request, whose changes must be saved.

    Raises:
        StoreError: one of its changes could not be saved.
    """
    answered = await outcome if isinstance(outcome, Awaitable) else outcome
    for file in files:
        await file.saved()
    for file, changes in zip(files, before or (), strict=False):
        if file.changes != changes and file.is_behind:
            raise StoreError(f"the change is in force, but a crash would undo it: {file.failure}")
    return answered


class ChangingTable(Protocol):
    """A table that changes all the time and is saved periodically."""

    is_changed: bool


class OffsetSaver:
    """Saves a table of offsets periodically.

    The state is taken first, then the log is flushed up to its end at that moment, then the state
    is written. So after a crash no saved offset points beyond the messages that survived.
    """

    def __init__(self, file: StateFile, positions: ChangingTable, store: Store) -> None:
        self._file = file
        self._positions = positions
        self._store = store
        #: How many states were taken, and the number of the newest one that was saved.
        self._taken = self._saved = 0

    async def run(self, pause_ms: Callable[[], int]) -> None:
        """Saves after each pause if the table has changed, until cancelled."""
        while True:
            await asyncio.sleep(pause_ms() / 1000)
            await self.save()

    async def save(self) -> None:
        """Saves the table if it has changed, after the log is flushed."""
        if not self._positions.is_changed and not self._file.is_behind:
            return
        number, state = self._take()
        if await self._store.flushed.reach(self._store.log_end, Deadline.after(_FLUSH_SECONDS)):
            await self._save(number, state)
        else:
            self._positions.is_changed = True

    async def save_at_once(self) -> None:
        """Flushes the log and saves the table at once.

        Raises:
            StoreError: the disk refuses it; it is tried again with the next round.
            ClosedError: the store is closed.
        """
        number, state = self._take()
        try:
            await self._store.sync()
        except (StoreError, ClosedError):
            self._positions.is_changed = True
            raise
        await self._save(number, state)
        if self._file.is_behind:
            raise StoreError(
                f"the change is in force, but {self._file.path} cannot be saved, so a crash would "
                "undo it; saving it is tried again"
            )

    def _take(self) -> tuple[int, Mapping[str, Any]]:
        self._positions.is_changed = False
        self._taken += 1
        return self._taken, self._file.state()

    async def _save(self, number: int, state: Mapping[str, Any]) -> None:
        """Saves a state, unless a newer one was saved while this one waited for the log."""
        await self._file.idle()
        if number > self._saved:
            self._saved = number
            await self._file.save_in_turns(state)
