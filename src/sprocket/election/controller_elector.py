"""An elector whose decisions RocketMQ's controller makes, so that our brokers join its clusters.

The controller watches over masters by their heartbeats and connections and elects by itself: a
master whose connection closes at once, one that is silent after its timeout. A broker proposes
itself only if there is no master. The first election takes who asks first; later ones take, of the
living members of the in-sync set, the one with the highest (epoch, end of log), then the lowest
priority; and the set is then the new master alone.

The controller compares epochs when the set is changed, and not when it is asked for an election,
so views are compared here before that.

Source: ReplicasManager of the broker; ControllerManager, ReplicasInfoManager, DefaultElectPolicy,
DefaultBrokerHeartbeatManager of the controller of RocketMQ 5.3.3.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from sprocket.base.deadline import Deadline
from sprocket.base.errors import ProtocolError, SprocketError
from sprocket.base.ports import Clock
from sprocket.base.watermark import Watermark
from sprocket.election.controller_calls import ControllerCalls, unreadable
from sprocket.election.controller_numbers import new_number
from sprocket.election.controller_views import elected, is_older, view_of
from sprocket.election.elector import (
    ElectionRefused,
    ElectorUnavailable,
    GroupView,
    LogPosition,
    Member,
)
from sprocket.election.identity import IdentityFile
from sprocket.protocol.bodies import ElectedBody, InSyncSetBody, ReplicaTable
from sprocket.protocol.codes import RequestCode, ResponseCode
from sprocket.protocol.command import Command, Reply
from sprocket.protocol.requests.election import (
    AlterInSyncSet,
    ElectMaster,
    ElectMasterReply,
    ExchangeReplicaAddress,
    ExchangeReplicaAddressReply,
    InSyncSets,
    RegisterMember,
)
from sprocket.protocol.requests.route import BrokerHeartbeat
from sprocket.remoting.endpoints import Endpoint
from sprocket.remoting.pool import Pool
from sprocket.remoting.transport import Peer

logger = logging.getLogger(__name__)

#: Seconds that others have to answer who are not waited for longer.
_ASIDE_SECONDS = 0.5
#: The shortest time between two looks at the group, s, however often somebody says it has changed.
_GAP_SECONDS = 0.02


class GroupOfBrokers(NamedTuple):
    """Which broker this is: its cluster, its name, and its priority in elections."""

    cluster: str
    name: str
    priority: int = 0


class ControllerTimes(NamedTuple):
    """Seconds between heartbeats, and without one until the controller takes a broker for dead."""

    heartbeat: float = 1.0
    silence: float = 10.0


class ControllerElector:
    """Follows the decisions of RocketMQ's controller for one broker; an `Elector`.

    Args:
        controllers: `host:port` of all controllers, or of some.
        group: which broker this is.
        identity: where its number is kept.
        pool: connections to controllers and masters; `leave` closes it.
        times: how often the controller hears of this broker.

    Attributes:
        view, changes, is_deciding: as in `Elector`.
    """

    is_deciding = False

    def __init__(
        self,
        controllers: Sequence[str],
        group: GroupOfBrokers,
        identity: IdentityFile,
        *,
        pool: Pool,
        clock: Clock,
        times: ControllerTimes | None = None,
    ) -> None:
        self.view = GroupView()
        self.changes = Watermark()
        self._group = group
        self._identity = identity
        self._pool = pool
        self._clock = clock
        self._times = times or ControllerTimes()
        self._calls = ControllerCalls(controllers, pool)
        self._me: Member | None = None
        self._position = LogPosition()
        self._writes_until = 0.0
        #: How often somebody has said that the group may have changed.
        self._hints = Watermark()
        self._watched: Peer | None = None
        #: Addresses for slaves of masters that were asked, by their addresses.
        self._replication: dict[str, str] = {}
        self._has_left = False
        self._is_heard = True

    @property
    def writes_until(self) -> float:
        """As in `Elector`: until the controller may take this broker for dead."""
        return self._writes_until

    def report(self, position: LogPosition) -> None:
        """As in `Elector`."""
        self._position = position

    def look_soon(self) -> None:
        """Makes `run` ask the controller at once: somebody says that the group has changed."""
        self._hints.rise(self._hints.value + 1)

    def endpoints(self) -> Mapping[int, Endpoint]:
        """The notice of the controller that there is a new master. Anybody could send it, so what
        it says is not believed: the controller is asked."""
        return {RequestCode.NOTIFY_BROKER_ROLE_CHANGED: self._role_changed}

    def _role_changed(self, command: Command, peer: Peer) -> Reply:
        self.look_soon()
        return Reply()

    async def join(self, address: str, replication_address: str) -> int:
        """As in `Elector`. A number that was applied for before a crash is applied for again.

        Raises:
            OSError: the number cannot be kept in the broker's folder.
        """
        number = self._identity.load()
        if number is None:
            number = await new_number(
                self._calls,
                self._identity,
                names=(self._group.cluster, self._group.name),
                check_code=f"{address};{self._clock.now_ms()}",
            )
        await self._calls.ask(
            RegisterMember(
                cluster_name=self._group.cluster,
                broker_name=self._group.name,
                broker_id=number,
                broker_address=address,
                invoke_time=self._clock.now_ms(),
            )
        )
        self._me = Member(number, address, replication_address, priority=self._group.priority)
        await self._prolong()
        return number

    async def run(self) -> None:
        """As in `Elector`: a heartbeat and a look at the group each second, and when it changes."""
        while not self._has_left:
            hints = self._hints.value
            await self._round()
            await asyncio.sleep(_GAP_SECONDS)
            await self._hints.reach(hints + 1, Deadline.after(self._times.heartbeat))

    async def claim(self, seen: GroupView) -> GroupView:
        """As in `Elector`. The controller elects the old master if that lives."""
        me = self._joined()
        self._compare(seen)
        return await self._elect(me.id, is_designated=False)

    async def set_in_sync(self, members: frozenset[int], seen: GroupView) -> GroupView:
        """As in `Elector`. The controller wants all of them to be alive."""
        me = self._joined()
        self._compare(seen)
        header = AlterInSyncSet(
            broker_name=self._group.name,
            master_broker_id=me.id,
            master_epoch=seen.epoch,
            invoke_time=self._clock.now_ms(),
        )
        body = InSyncSetBody(
            sync_state_set=sorted(members), sync_state_set_epoch=seen.set_epoch
        ).encode()
        try:
            reply = await self._calls.ask(header, body=body, is_repeatable=False)
            changed = InSyncSetBody.decode(reply.body)
        except ElectorUnavailable:
            self.look_soon()
            raise
        except ProtocolError as error:
            raise unreadable(error) from error
        return self._apply(
            self.view._replace(
                epoch=seen.epoch,
                master=me.id,
                in_sync=frozenset(changed.sync_state_set),
                set_epoch=changed.sync_state_set_epoch,
            )
        )

    async def hand_over(self, to: int, seen: GroupView, *, is_unclean: bool = False) -> GroupView:
        """As in `Elector`. The controller does not compare views: this is done just before. It
        takes a member that is not in sync only with its own setting `enableElectUncleanMaster`."""
        view = await self._look()
        self._compare(seen)
        if to not in view.in_sync and not is_unclean:
            raise ElectionRefused(f"member {to} is not in sync; {sorted(view.in_sync)} are")
        return await self._elect(to, is_designated=True)

    async def leave(self) -> None:
        """As in `Elector`. Nothing in the protocol says that a broker stops: the controller sees
        that its connection closes."""
        self._has_left = True
        self._writes_until = 0.0
        self._calls.close()
        self.look_soon()
        await self._pool.close()

    async def _round(self) -> None:
        """One heartbeat to all controllers, and a look at the group."""
        others = (self._beat_aside(each) for each in self._calls.others)
        try:
            _, *_ = await asyncio.gather(self._prolong(), *others)
        except SprocketError as error:
            if self._is_heard and not self._has_left:
                logger.warning("the controller does not serve this broker: %s", error)
            self._is_heard = False
        else:
            if not self._is_heard:
                logger.info("the controller serves this broker again")
            self._is_heard = True

    # A controller that has lost its lead answers heartbeats all the same, but not questions. So
    # the right to write grows only when one controller has answered both.
    async def _prolong(self) -> GroupView:
        started = asyncio.get_running_loop().time()
        await self._calls.ask(self._heartbeat())
        leader = self._calls.leader
        view = await self._look()
        if leader is not None and leader == self._calls.leader and not self._has_left:
            self._writes_until = max(self._writes_until, started + self._times.silence)
            self._watch(leader)
        return view

    async def _beat_aside(self, address: str) -> None:
        """A heartbeat to a controller that does not lead, which may do so next."""
        try:
            await self._pool.send_oneway(
                address, self._heartbeat(), deadline=Deadline.after(_ASIDE_SECONDS)
            )
        except SprocketError as error:
            logger.debug("no heartbeat to controller %s: %s", address, error)

    def _heartbeat(self) -> BrokerHeartbeat:
        me, position = self._joined(), self._position
        return BrokerHeartbeat(
            cluster_name=self._group.cluster,
            broker_addr=me.address,
            broker_name=self._group.name,
            broker_id=me.id,
            epoch=position.epoch,
            max_offset=position.end,
            confirm_offset=position.confirmed,
            heartbeat_timeout_mills=round(self._times.silence * 1000),
            election_priority=me.priority,
        )

    async def _look(self) -> GroupView:
        """Reads the view.

        Raises:
            ElectionRefused: the controller does not know the group.
            ElectorUnavailable: it does not answer.
        """
        body = msgspec.json.encode([self._group.name])
        try:
            reply = await self._calls.ask(InSyncSets(), body=body)
            facts = ReplicaTable.decode(reply.body).replicas_info_table.get(self._group.name)
        except ProtocolError as error:
            raise unreadable(error) from error
        if facts is None:
            raise ElectionRefused(
                f"the controller knows no brokers of the name {self._group.name} any more"
            )
        view = view_of(facts, me=self._me, replication=self._replication)
        master = view.members.get(view.master or 0)
        if master is None or master == view.members.get(self._me.id if self._me else 0):
            return self._apply(view)
        if master.is_alive and master.address not in self._replication:
            await self._ask_master(master.address)
            view = view_of(facts, me=self._me, replication=self._replication)
        return self._apply(view)

    async def _elect(self, number: int, *, is_designated: bool) -> GroupView:
        header = ElectMaster(
            cluster_name=self._group.cluster,
            broker_name=self._group.name,
            broker_id=number,
            designate_elect=is_designated,
            invoke_time=self._clock.now_ms(),
        )
        still = (ResponseCode.CONTROLLER_MASTER_STILL_EXIST,)
        try:
            reply = await self._calls.ask(header, accepts=still)
            body = ElectedBody.decode(reply.body)
            master = reply.read(ElectMasterReply)
        except ElectorUnavailable:
            self.look_soon()
            raise
        except ProtocolError as error:
            raise unreadable(error) from error
        return self._apply(elected(master, body.sync_state_set, self.view))

    async def _ask_master(self, address: str) -> None:
        """Asks a new master where slaves reach it, which the controller does not know."""
        deadline = Deadline.after(_ASIDE_SECONDS)
        try:
            reply = await self._pool.ask(address, ExchangeReplicaAddress(), deadline=deadline)
            found = reply.read(ExchangeReplicaAddressReply).master_ha_address
        except SprocketError as error:
            logger.debug("master %s does not say where slaves reach it: %s", address, error)
            return
        if found:
            self._replication[address] = found

    def _apply(self, view: GroupView) -> GroupView:
        """Makes a view the known one, unless a later one is known already."""
        if is_older(view, self.view):
            logger.info(
                "the controller has an older state of the group (epoch %d) than it had (%d)",
                view.epoch,
                self.view.epoch,
            )
        elif view != self.view:
            self.view = view
            self.changes.rise(self.changes.value + 1)
        return self.view

    def _compare(self, seen: GroupView) -> None:
        """
        Raises:
            ElectionRefused: the group has changed since.
        """
        if (seen.epoch, seen.set_epoch) != (self.view.epoch, self.view.set_epoch):
            raise ElectionRefused(
                f"the group has changed: epoch {self.view.epoch}, set {self.view.set_epoch}, and "
                f"not {seen.epoch}, {seen.set_epoch}"
            )

    def _joined(self) -> Member:
        if self._me is None:
            raise ElectionRefused("this broker has not joined its group")
        return self._me

    def _watch(self, leader: str) -> None:
        """Looks at once when the connection to the controller breaks: it elects then."""
        peer = self._pool.connected(leader)
        if peer is not None and peer is not self._watched:
            self._watched = peer
            peer.on_close(lambda lost: self.look_soon())
