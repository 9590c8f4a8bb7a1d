"""Replication of a broker whose group elects its master: it begins as a slave, and may lead later.

The stream has epochs, and what counts is the in-sync set of the elector.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from sprocket.base.deadline import Deadline
from sprocket.base.errors import ServiceNotAvailable, StoreError, SystemFailure
from sprocket.base.ports import Entropy
from sprocket.base.watermark import Watermark
from sprocket.broker.members.in_sync_upkeep import InSyncUpkeep
from sprocket.broker.members.leadership import MasterContact
from sprocket.broker.members.replication import Replication
from sprocket.broker.members.seat import Seat
from sprocket.broker.settings import BrokerSettings
from sprocket.election.elector import LogPosition, Member
from sprocket.protocol.codes import ResponseCode
from sprocket.remoting.pool import Pool
from sprocket.remoting.tls.settings import TlsConfig
from sprocket.replication.copies import CopyRules
from sprocket.replication.epoch_file import EpochFile
from sprocket.replication.epoch_frames import SlaveHello
from sprocket.replication.epochs import EpochList
from sprocket.replication.in_sync_copies import InSyncCopies
from sprocket.replication.master_address import MasterAddress
from sprocket.replication.master_forms import EpochForm
from sprocket.replication.rules import StreamRules
from sprocket.replication.slave import Slave
from sprocket.replication.slave_forms import LogsDiffer, SlaveMember
from sprocket.replication.slave_link import SlaveLink
from sprocket.store.store import Store

#: Heartbeats in a lease, and the pauses before a slave connects again, in parts of it.
_HEARTBEATS = 10
_PAUSE_FIRST, _PAUSE_MOST = 0.02, 0.2
#: Pause before the next look whether a member has the whole log, s.
_LOOK_SECONDS = 0.002


class GroupReplication(Replication):
    """Replication of one member of a group. Use it with `async with` once the store is open.

    Args:
        replicated, readable: as for `Replication`; both are the confirmed offset.
        seat: the broker's place in the group.
        epochs: the epochs of the log.

    Attributes:
        in_sync: what a master knows of the other members' logs; None at a slave.
        cut_at: log offset from which on the log is not the master's; None if nothing differs.
    """

    def __init__(
        self,
        store: Store,
        settings: BrokerSettings,
        *,
        replicated: Watermark,
        readable: Watermark,
        pool: Pool,
        entropy: Entropy,
        seat: Seat,
        epochs: EpochFile,
        tls: TlsConfig | None = None,
        may_copy: Callable[[str], bool] = lambda host: True,
    ) -> None:
        self._seat = seat
        super().__init__(
            store,
            settings,
            replicated=replicated,
            readable=readable,
            pool=pool,
            entropy=entropy,
            tls=tls,
            may_copy=may_copy,
        )
        config = settings.config
        self.is_slave = True
        self._epochs = epochs
        self._epoch_min = self._led_from = 0
        self._followed_at = self._time()
        self.master = MasterAddress()
        self.in_sync: InSyncCopies | None = None
        self.cut_at: int | None = None
        self._least = CopyRules(config.copies_wanted, config.copies_least)

    def _stream_rules(self) -> StreamRules:
        """As the settings say, and as quick as the lease wants it."""
        rules, lease = super()._stream_rules(), self._seat.lease
        return rules._replace(
            heartbeat=min(rules.heartbeat, lease / _HEARTBEATS),
            silence=min(rules.silence, lease),
            pauses=(lease * _PAUSE_FIRST, lease * _PAUSE_MOST),
        )

    def change(self) -> None:
        """Applies the settings in force."""
        config = self._settings.config
        self._least = CopyRules(config.copies_wanted, config.copies_least)
        if self.in_sync is not None:
            self.in_sync.change(self._least)
        super().change()

    @property
    def epochs(self) -> EpochList:
        """The epochs of the log."""
        return self._epochs.epochs

    @property
    def position(self) -> LogPosition:
        """How far the log is."""
        epoch = max(0, self._epochs.epochs.last_epoch)
        return LogPosition(epoch, self._store.log_end, self._readable.value)

    def figures(self) -> dict[str, str]:
        """The role, the epoch and the confirmed offset; of a master also how far the others are."""
        position, now = self.position, self._time()
        found = {
            "groupRole": "slave" if self.is_slave else "master",
            "groupMember": str(self._seat.number),
            "groupEpoch": str(position.epoch),
            "confirmOffset": str(position.confirmed),
        }
        if (copies := self.in_sync) is None:
            return found
        found["inSyncSet"] = ",".join(map(str, sorted(copies.in_sync)))
        for number, each in sorted(copies.members.items()):
            found[f"behindBytes.{number}"] = str(copies.behind(number, position.end))
            if each.caught_up_at is not None:
                found[f"behindMs.{number}"] = str(round((now - each.caught_up_at) * 1000))
        return found

    def is_in_sync(self, link: SlaveLink) -> bool:
        """Whether a connected slave is in the in-sync set."""
        copies = self.in_sync
        return copies is not None and link.hello is not None and link.hello.member in copies.in_sync

    # A slave.

    def learn_master(self, address: str, replication: str) -> None:
        """Does nothing: the elector says who leads."""

    def follow(self, master: Member, epoch: int) -> None:
        """Copies from another master of the group from now on.

        Args:
            epoch: its epoch; a master of an older one is not copied.
        """
        self._epoch_min = epoch
        self._followed_at = self._time()
        self.slave = None
        self.master.learn(master.address, master.replication_address)
        self.master.renew()

    @property
    def link(self) -> MasterContact:
        """The connection to the master that is followed."""
        slave = self.slave
        heard_at = None if slave is None else slave.heard_at
        return MasterContact(
            self.master.replication,
            is_open=slave is not None and slave.is_connected,
            has_begun=heard_at is not None,
            heard_at=max(self._followed_at, heard_at or self._followed_at),
        )

    async def run(self, on_copied: Callable[[], None]) -> None:
        """Copies the master's log, or keeps the in-sync set as the master, until cancelled.

        Raises:
            StoreError: a slave's disk failed.
        """
        if self.in_sync is not None:
            await self._upkeep(self.in_sync).run()
            return
        member = SlaveMember(
            self._store,
            hello=SlaveHello(self._seat.number),
            epochs=self._epochs,
            epoch_min=lambda: self._epoch_min,
            confirmed=self._readable,
            may_be_rocketmqs=not self._seat.elector.is_deciding,
        )
        self.slave = Slave(
            self._store,
            self.master,
            rules=self._rules,
            is_flushing=self._is_flushing,
            entropy=self._entropy,
            on_copied=on_copied,
            compared=_nothing,
            stream=member.stream,
            on_end=lambda _: self._seat.on_lost(),
            tls=self._slave_tls,
        )
        try:
            await self.slave.run()
        except LogsDiffer as differ:
            self.cut_at = differ.cut_at
            self._seat.on_lost()

    # A master.

    async def lead(self, epoch: int) -> None:
        """Makes a slave the master of an epoch, which is on the disk before any message of it. What
        copied the old master's log must have ended.

        Raises:
            UsageError: the port for slaves is in use.
            StoreError: the epoch cannot be kept.
        """
        store, view = self._store, self._seat.elector.view
        start = store.log_end
        try:
            self._epochs.begin(epoch, store.log_start, start)
        except (ValueError, OSError) as error:
            raise StoreError(f"epoch {epoch} cannot be kept: {error}") from error
        self.slave, self._led_from = None, start
        self.in_sync = InSyncCopies(
            self._seat.number, self._least, confirmed=self._readable.value, epoch_start=start
        )
        self.in_sync.set_in_sync(view.in_sync | {self._seat.number}, view.set_epoch)
        form = EpochForm(self.in_sync, self._epochs, self._readable)
        await self._listen(form, self._seat.replication_port)
        self.is_slave = False

    # Readers have seen at the last master what this one does not yet know to be confirmed. So it
    # waits until it knows that of all it had when it began: else ends of queues would go back.
    # Kafka waits likewise (KIP-207).
    def settling(self) -> Awaitable[bool] | None:
        """What to wait for until what this master began with is confirmed; None if it is."""
        if self.in_sync is None or self._readable.value >= self._led_from:
            return None
        return self._readable.reach(self._led_from, Deadline.after(self._seat.lease))

    def _upkeep(self, copies: InSyncCopies) -> InSyncUpkeep:
        return InSyncUpkeep(
            self._seat.elector,
            copies,
            number=self._seat.number,
            lease=self._seat.lease,
            behind_ms=lambda: self._settings.config.copies_behind_ms,
            log_end=lambda: self._store.log_end,
            on_change=self._set_changed,
        )

    def _set_changed(self) -> None:
        if self.sender is not None:
            self.sender.recount()

    def give_up(self) -> None:
        """Ends what waits for copies: this broker is not the master any more, so nobody knows
        whether the next one has them."""
        error = ServiceNotAvailable("this broker is not the master any more; send to the new one")
        self._replicated.fail(error)

    def ends(self) -> Mapping[int, int]:
        """The log offsets up to which the connected members have the log."""
        known = {} if self.in_sync is None else self.in_sync.members
        return {number: each.report for number, each in known.items() if each.is_connected}

    async def has_all(self, member: int, deadline: Deadline) -> bool:
        """Whether a member has the whole log before the deadline."""
        copies, end = self.in_sync, self._store.log_end
        if copies is None:
            return False
        while copies.behind(member, end) and deadline.left() > 0:  # noqa: ASYNC110 - at a stop
            await asyncio.sleep(_LOOK_SECONDS)
        return not copies.behind(member, end)

    def is_known(self, host: str) -> bool:
        """Whether a host is known to have a member of the group."""
        return True

    # What messages wait for.

    @property
    def is_waiting(self) -> bool:
        """Whether sends wait for the in-sync set."""
        return self._least.wanted > 1

    def role_check(self) -> Callable[[bool], None] | None:
        """What each message is checked with before it is stored; see `Ingress`."""
        return self._check_waiting if self.is_waiting else self._check_lead

    # Whoever waits for all of the in-sync set needs no clock: if another member leads by now, one
    # of the set follows it, and confirms nothing here. An answer without copies needs the right to
    # lead at this moment, whatever has held up this process.
    def _check_waiting(self, is_awaited: bool) -> None:
        if is_awaited:
            self.check_copies()
        else:
            self._check_lead(is_awaited)

    def _check_lead(self, is_awaited: bool) -> None:
        """
        Raises:
            ServiceNotAvailable: another broker of the group may lead by now.
        """
        if self._time() >= self._seat.elector.writes_until:
            raise ServiceNotAvailable(
                "another broker of the group may be its master by now: the elector has not "
                "confirmed this one for as long as its lease lasts"
            )

    def check_copies(self, is_awaited: bool = True) -> None:
        """
        Raises:
            SystemFailure: too few members are in sync to accept a message that waits for them.
        """
        copies = self.in_sync
        if copies is not None and not copies.is_enough(self._store.log_end):
            raise SystemFailure(
                f"in-sync replicas not enough: {len(copies.in_sync)} of the {self._least.least} "
                "copies that a message needs, the master's included"
            )

    async def reach(self, end: int, deadline: Deadline) -> int:
        """The response code for a message once all of the in-sync set have it, or at the deadline.

        Args:
            end: the log offset after the message.
        """
        is_reached = await self._replicated.reach(end, deadline)
        return ResponseCode.SUCCESS if is_reached else ResponseCode.FLUSH_SLAVE_TIMEOUT


async def _nothing() -> None:
    """Epochs are compared at the greeting; nothing else need be."""
