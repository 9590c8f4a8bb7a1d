"""What operators see of a broker's group, and how they give the lead to another member.

Source of the epochs: AdminBrokerProcessor.getBrokerEpochCache of RocketMQ 5.3.3.
"""

from __future__ import annotations

from sprocket.base.deadline import Deadline
from sprocket.base.errors import InvalidParameter, SystemFailure
from sprocket.broker.dispatch import Endpoints
from sprocket.broker.members.replication import Replication
from sprocket.broker.members.seat import Seat
from sprocket.broker.settings import BrokerSettings
from sprocket.election.elector import ElectionRefused, GroupView
from sprocket.message.offsets import LONG_MAX
from sprocket.protocol.bodies import (
    EpochEntriesBody,
    EpochEntry,
    GroupMemberFacts,
    GroupStateBody,
)
from sprocket.protocol.codes import MASTER, OwnRequestCode, RequestCode
from sprocket.protocol.command import Command, Reply
from sprocket.protocol.requests.replica import HandOver
from sprocket.remoting.transport import Peer
from sprocket.store.store import Store

#: How long a new master may need for what it does not have yet, s.
_HAND_OVER_SECONDS = 3.0


class ElectionRequests:
    """Shows the group of a broker, and changes its master.

    Args:
        seat: this broker's place in its group; None if its role is set.
    """

    def __init__(
        self,
        store: Store,
        replication: Replication,
        *,
        settings: BrokerSettings,
        seat: Seat | None,
    ) -> None:
        self._store = store
        self._replication = replication
        self._settings = settings
        self._seat = seat

    def endpoints(self) -> Endpoints:
        """The endpoints, by request code."""
        return {
            OwnRequestCode.GROUP_STATE: self.state,
            OwnRequestCode.HAND_OVER: self.hand_over,
            RequestCode.GET_BROKER_EPOCH_CACHE: self.epochs,
        }

    def epochs(self, command: Command, peer: Peer) -> Reply:
        """The epochs of this broker's log, as `mqadmin getBrokerEpoch` shows them."""
        config, seat = self._settings.config, self._seat
        if seat is None:
            raise SystemFailure(
                "this request only for controllerMode: without an elector a log has no epochs"
            )
        end, entries = self._store.log_end, self._replication.epochs.entries
        ends = [*(each.start for each in entries[1:]), LONG_MAX][: len(entries)]
        body = EpochEntriesBody(
            broker_id=seat.number if self._replication.is_slave else MASTER,
            broker_name=config.name,
            cluster_name=config.cluster,
            epoch_list=[
                EpochEntry(end_offset=until, epoch=each.epoch, start_offset=each.start)
                for each, until in zip(entries, ends, strict=True)
            ],
            max_offset=end,
        )
        return Reply(body=body.encode())

    def state(self, command: Command, peer: Peer) -> Reply:
        """This broker's state, and its group's as it sees it."""
        config, seat = self._settings.config, self._seat
        mine = GroupStateBody(
            cluster=config.cluster,
            broker=config.name,
            confirmed=self._store.readable_end,
            last_stored_ms=self._store.newest_ms,
            log_end=self._store.log_end,
            number=config.id if seat is None else seat.number,
            slave=self._replication.is_slave,
        )
        if seat is not None:
            _add_view(mine, seat.elector.view)
            mine.elector = config.elector_place
        return Reply(body=mine.encode())

    async def hand_over(self, command: Command, peer: Peer) -> Reply:
        """Has another member made the master; without losing anything, if this is the master."""
        asked, seat = command.read(HandOver), self._seat
        if seat is None:
            name = self._settings.config.name
            raise SystemFailure(f"broker {name} has no elector: broker.role says what it is")
        view, to = seat.elector.view, asked.to
        if asked.is_unclean and to is None:
            raise InvalidParameter("whoever may miss what was acknowledged is named by its number")
        if to is None or to != view.master:
            await self._elect(seat, view, to, is_unclean=asked.is_unclean)
        return self.state(command, peer)

    async def _elect(
        self, seat: Seat, view: GroupView, to: int | None, *, is_unclean: bool
    ) -> None:
        if view.master == seat.number and not is_unclean:
            _check(view, to)
            if not await seat.hand_over(Deadline.after(_HAND_OVER_SECONDS), to):
                raise SystemFailure(
                    f"no other member had everything within {_HAND_OVER_SECONDS:g} s: "
                    f"{seat.number} goes on as the master"
                )
            return
        if to is None:
            leader = view.members.get(view.master or 0)
            if leader is not None and leader.is_alive and seat.number != leader.id:
                raise ElectionRefused(
                    f"member {leader.id} leads and lives: it is asked itself, or the new master is "
                    "named by its number"
                )
            to = _check(view, None)
        await seat.elector.hand_over(to, view, is_unclean=is_unclean)


def _check(view: GroupView, to: int | None) -> int:
    """The member that could lead instead of the master: the wanted one, or the best.

    Raises:
        ElectionRefused: there is none.
    """
    able = [
        member
        for number, member in sorted(view.members.items())
        if number in view.in_sync and number != view.master and member.is_alive
    ]
    chosen = [each for each in able if to in (None, each.id)]
    if not chosen:
        who = "no member may" if to is None else f"member {to} may not"
        others = ", ".join(str(each.id) for each in able) or "none"
        raise ElectionRefused(f"{who} take over; in sync and alive besides the master: {others}")
    return min(chosen, key=lambda each: (each.priority, each.id)).id


def _add_view(body: GroupStateBody, view: GroupView) -> None:
    body.epoch, body.master, body.set_epoch = view.epoch, view.master or 0, view.set_epoch
    body.in_sync = sorted(view.in_sync)
    body.members = [
        GroupMemberFacts(
            address=each.address,
            alive=each.is_alive,
            number=number,
            priority=each.priority,
            replication_address=each.replication_address,
        )
        for number, each in sorted(view.members.items())
    ]
