"""Checks undecided transactions: asks their producers, and parks those that no producer ends.

Source: TransactionalMessageCheckService, AbstractTransactionalMessageCheckListener of RocketMQ 5.x.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Protocol

from sprocket.base.believed_time import BelievedTime
from sprocket.base.deadline import loop_ms
from sprocket.base.errors import ClosedError, CorruptRecord, OffsetOutOfRange, StoreError
from sprocket.base.ports import Clock
from sprocket.base.troubles import Troubles
from sprocket.message import properties as names
from sprocket.store.log.drafts import IllegalDraft
from sprocket.transaction.check import CheckRules, CheckSchedule, Verdict, judge, wait_ms
from sprocket.transaction.half import Half, StoredHalf
from sprocket.transaction.ledger import Ledger
from sprocket.transaction.settle import Settlement

logger = logging.getLogger(__name__)

#: The most halves in one turn of the loop.
_ROUND_MAX = 32
_PAUSE_SECONDS_MAX = 1.0
#: The pause after the store has refused a copy.
_AGAIN_MS = 1_000
#: A half that is this far behind the newest one is copied to the end of the queue. Otherwise a
#: start would have to read the queue from there, with the op records of all that ended since.
_BEHIND_MAX = 65_536


class ConnectedProducers(Protocol):
    """The connected producers."""

    def has(self, group: str) -> bool:
        """Whether a producer of the group is connected."""
        ...

    def ask(self, copy: Half, found: StoredHalf, asked: bytes) -> None:
        """Asks one producer of the half's group.

        Args:
            copy: the newest copy, which the reply must name.
            asked: its record for the request.
        """
        ...


class CheckLoop:
    """The loop that checks undecided transactions.

    Attributes:
        rules: when a half is due, by the settings of now.
        count: the number of checks sent to producers since the start.
    """

    def __init__(
        self,
        settlement: Settlement,
        ledger: Ledger,
        *,
        producers: ConnectedProducers,
        rules: Callable[[], CheckRules],
        clock: Clock,
    ) -> None:
        self._settlement = settlement
        self._ledger = ledger
        self._producers = producers
        self.rules = rules
        self._clock = clock
        self._schedule = CheckSchedule()
        #: The time by which halves are too old; in the first hour after a start none is.
        self._believed = BelievedTime(0, 0)
        self._noted = 0
        #: By producer group.
        self._troubles = Troubles(lambda: asyncio.get_running_loop().time(), logger)
        self.count = 0

    async def run(self) -> None:
        """Checks the halves that are due, until cancelled."""
        while True:
            pause = self._round()
            await asyncio.sleep(pause)

    def _round(self) -> float:
        """One turn; returns the pause until the next, s."""
        # Op records that the store refused before are tried again first. The number of halves in a
        # turn is bounded, since each one reads the log on the event loop.
        rules = self.rules()
        if self._ledger.untold:
            self._settlement.write_op_records()
        self._note(rules)
        for _ in range(_ROUND_MAX):
            offset = self._schedule.take(loop_ms())
            if offset is None:
                break
            half = self._ledger.get(offset)
            if half is not None:
                self._guarded(half, rules, self._check)
        is_behind = self._catch_up(rules)
        due = self._schedule.next_ms()
        if due is None:
            return 0.0 if is_behind else _PAUSE_SECONDS_MAX
        left = (due - loop_ms()) / 1000
        return 0.0 if is_behind else min(max(left, 0.0), _PAUSE_SECONDS_MAX)

    def _note(self, rules: CheckRules) -> None:
        """Schedules new halves. Most transactions end before that and never get here."""
        for half in self._ledger.since(self._noted):
            self._put(half, rules, half.offset)
        self._noted = self._ledger.half_next
        self._schedule.tidy(len(self._ledger), self._ledger.__contains__)

    # A half is scheduled once, by the loop's clock: whatever the wall clock does afterwards, its
    # check comes after the pause that was right then.
    def _put(self, half: Half, rules: CheckRules, offset: int) -> None:
        """Schedules the next check of a half, whose newest copy is at a queue offset."""
        pause_ms = wait_ms(half, rules, now_ms=self._clock.now_ms())
        self._schedule.put(loop_ms() + pause_ms, offset)

    def _catch_up(self, rules: CheckRules) -> bool:
        """Copies halves that are far behind; returns whether there are more."""
        for _ in range(_ROUND_MAX):
            half = self._ledger.first()
            if half is None or self._ledger.half_next - half.offset <= _BEHIND_MAX:
                return False
            if not self._guarded(half, rules, self._renew):
                return False
        return True

    def _guarded(
        self, half: Half, rules: CheckRules, do: Callable[[Half, StoredHalf, CheckRules], None]
    ) -> bool:
        # Three kinds of failure need three answers: a record that is gone never comes back, so the
        # half is dropped; one that cannot be copied is parked as it is, for an operator; a store
        # that refuses for now (a full disk) gets another try. None may end the loop.
        try:
            found = self._settlement.read(half.log_offset)
        except (OffsetOutOfRange, CorruptRecord) as error:
            logger.error("half message at %d is given up: %s", half.log_offset, error)
            self._settlement.lose(half)
            return True
        try:
            do(half, found, rules)
        except (CorruptRecord, IllegalDraft) as error:
            logger.error("half message at %d cannot be copied: %s", half.log_offset, error)
            return self._try_to_park(half, found)
        except (StoreError, ClosedError) as error:
            self._put_off(half, error)
            return False
        return True

    def _try_to_park(self, half: Half, found: StoredHalf) -> bool:
        try:
            self._settlement.park(half, found)
        except (StoreError, ClosedError) as error:
            self._put_off(half, error)
            return False
        return True

    def _put_off(self, half: Half, error: Exception) -> None:
        logger.warning("half message at %d is looked at again later: %s", half.log_offset, error)
        self._schedule.put(loop_ms() + _AGAIN_MS, half.offset)

    def _check(self, half: Half, found: StoredHalf, rules: CheckRules) -> None:
        if self._settlement.end_if_known(half, found):
            return
        group = found.properties.get(names.PRODUCER_GROUP, "")
        now_ms = self._believed.at(self._clock.now_ms(), loop_ms())
        verdict = judge(half, rules, now_ms=now_ms, can_ask=self._producers.has(group))
        if verdict is Verdict.WAIT:
            text = f"no producer of group {group} is connected to end its transactions"
            self._troubles.failed(group, text)
            self._schedule.put(loop_ms() + rules.interval_ms, half.offset)
        elif verdict is Verdict.PARK:
            logger.warning("transaction of group %s at %d is parked", group, half.log_offset)
            self._settlement.park(half, found)
        else:
            copy, asked = self._settlement.copy(half, found, checks=half.checks + 1)
            self._producers.ask(copy, found, asked)
            self._troubles.ended(group, f"a producer of group {group} is connected again")
            self.count += 1

    def _renew(self, half: Half, found: StoredHalf, rules: CheckRules) -> None:
        copy, _ = self._settlement.copy(half, found, checks=half.checks)
        self._put(half, rules, copy.offset)
