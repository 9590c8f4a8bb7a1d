"""An elector over leased keys with compare-and-set, such as etcd's.

Keys under `/sprocket/<cluster>/<broker name>/`:

    group           what is decided (`GroupState`); each change is compared with the revision seen
    members/<n>     the addresses of each member, for ever (`MemberRecord`)
    alive/<n>       bound to a lease that the member keeps alive

So two masters of one epoch are impossible, and a master whose group went on changes nothing, at any
state of clocks, leases and networks. Leases only show who lives, and bound how long an asynchronous
master accepts messages without an answer of the store.

Answers may be lost. Each change bears a mark, and is repeated with the same comparison until its
outcome is known: it is made once at most, and whoever made it recognises the mark.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Mapping
from contextlib import suppress
from urllib.parse import quote

from sprocket.base.backoff import pauses
from sprocket.base.ports import Entropy
from sprocket.base.troubles import Troubles
from sprocket.base.watermark import Watermark
from sprocket.election.elector import (
    ElectionRefused,
    ElectorUnavailable,
    GroupView,
    LogPosition,
    Member,
)
from sprocket.election.group_state import (
    GroupState,
    MemberRecord,
    claimed,
    handed_over,
    view_of,
    with_in_sync,
)
from sprocket.election.identity import IdentityFile
from sprocket.election.leased_keys import Compare, LeasedKeys, Picture, Put
from sprocket.election.membership import GroupMembership

logger = logging.getLogger(__name__)

#: Parts of a lease: between two signs of life, and between attempts after a failure.
_ROUND, _RETRY = 0.25, 0.05


class KeyElector:
    """The elector of one broker.

    Args:
        keys: the store of keys; `leave` closes it.
        identity: where this broker keeps its number.
        entropy: for marks that nobody else makes.
        cluster, name: of the broker.
        lease_ms: for how long others take this broker for alive without a sign of it, ms.
        priority: of several members that could lead, the one with the lowest leads.
        elect_unclean: whether this broker may lead without being in sync, if none that is lives.

    Attributes:
        id: the number of this broker; 0 before it has joined.
        view, changes, is_deciding: as `Elector` says.
    """

    is_deciding = True

    def __init__(
        self,
        keys: LeasedKeys,
        identity: IdentityFile,
        entropy: Entropy,
        *,
        cluster: str,
        name: str,
        lease_ms: int = 3_000,
        priority: int = 0,
        elect_unclean: bool = False,
    ) -> None:
        self.view = GroupView()
        self.changes = Watermark()
        self._keys = keys
        self._entropy = entropy
        self._prefix = f"/sprocket/{quote(cluster, safe='')}/{quote(name, safe='')}/"
        self._group_key = f"{self._prefix}group"
        self._lease_seconds = lease_ms / 1000
        self._elect_unclean = elect_unclean
        self._membership = GroupMembership(
            keys, identity, entropy, self._prefix, self._lease_seconds, priority
        )
        #: The store's revision of the view.
        self._revision = 0
        #: The newest revision that the watch has reported.
        self._watched = 0
        self._last_epoch = 0
        self._until = -math.inf
        self._has_left = False

    @property
    def id(self) -> int:
        """The number of this broker; 0 before it has joined."""
        return self._membership.id

    @property
    def writes_until(self) -> float:
        """The time of the loop until which this broker may accept messages; see `Elector`."""
        is_master = self.id and self.view.master == self.id and not self._has_left
        return self._until if is_master else -math.inf

    async def join(self, address: str, replication_address: str) -> int:
        """Makes this broker a member, or finds it again; see `Elector`.

        Raises:
            ElectorUnavailable: it does not answer; try again.
            ElectionRefused: the number belongs to another broker, or its file is damaged.
            OSError: the number cannot be kept.
        """
        self._has_left = False
        number = await self._membership.join(address, replication_address)
        await self._show_life()
        return number

    async def run(self) -> None:
        """Shows that this broker lives and follows the view, until cancelled; see `Elector`."""
        troubles = Troubles(asyncio.get_running_loop().time, logger)
        waits = pauses(self._lease_seconds * _RETRY, self._lease_seconds * _ROUND)
        watching: asyncio.Task[None] | None = None
        missed = 0
        try:
            while True:
                try:
                    newest = await self._show_life()
                except (ElectorUnavailable, ElectionRefused) as error:
                    troubles.failed(
                        "life", "the elector does not confirm that this broker lives", error
                    )
                    await asyncio.sleep(next(waits))
                    continue
                troubles.ended("life", "the elector confirms that this broker lives")
                waits = pauses(self._lease_seconds * _RETRY, self._lease_seconds * _ROUND)
                # A watch may be silent for ever, on a connection that is dead: one that twice has
                # not seen what a read shows is begun again.
                missed = missed + 1 if newest > self._watched else 0
                if watching is None or watching.done() or missed > 1:
                    await _end(watching)
                    watching = asyncio.create_task(self._watch())
                    missed = 0
                await asyncio.sleep(self._lease_seconds * _ROUND)
        finally:
            await _end(watching)

    def report(self, position: LogPosition) -> None:
        """Records the epoch of this broker's log. Members compare their positions themselves."""
        self._last_epoch = position.epoch

    async def claim(self, seen: GroupView) -> GroupView:
        """Tries to become the master after the one of a view; see `Elector`."""
        state = claimed(
            self._with_members(seen),
            self._joined(),
            last_epoch=self._last_epoch,
            is_unclean=self._elect_unclean,
        )
        return await self._change(seen, state)

    async def set_in_sync(self, members: frozenset[int], seen: GroupView) -> GroupView:
        """Changes the in-sync set, as the master of a view; see `Elector`."""
        if members - self.view.members.keys():  # one may have joined this very moment
            self._apply(await self._keys.get(self._prefix))
        state = with_in_sync(self._with_members(seen), self._joined(), members)
        return seen if members == seen.in_sync else await self._change(seen, state)

    async def hand_over(self, to: int, seen: GroupView, *, is_unclean: bool = False) -> GroupView:
        """Makes another member the master; see `Elector`."""
        self._joined()
        state = handed_over(self._with_members(seen), to, is_unclean=is_unclean)
        return await self._change(seen, state)

    async def leave(self) -> None:
        """Says that this broker stops; see `Elector`."""
        self._has_left = True
        self._until = -math.inf
        with suppress(ElectorUnavailable):
            await self._membership.leave()
        await self._keys.close()

    def _with_members(self, seen: GroupView) -> GroupView:
        """A view with the members as they are known now: who lives is not what is compared."""
        return seen._replace(members=self.view.members)

    def _joined(self) -> int:
        if not self.id or self._has_left:
            raise ElectionRefused("this broker is no member of the group yet, or no more")
        return self.id

    async def _show_life(self) -> int:
        """Prolongs the lease, and reads the group.

        The time until which this broker may write is counted from before the request, and counts
        only if the group was read after it: whoever is not the master any more learns it here.

        Returns:
            The newest revision of a key of the group.
        """
        began = asyncio.get_running_loop().time()
        seconds = await self._membership.show_life()
        known = self._revision
        picture = await self._keys.get(self._prefix)
        # A watch may have shown something newer meanwhile; that is no fault of the store.
        is_overtaken = known <= picture.revision < self._revision
        if not self._apply(picture) and not is_overtaken:
            raise ElectorUnavailable(
                "it shows an older state of the group than before: was its data lost or restored?"
            )
        if not self._membership.is_shown(picture):
            self._membership.forget_lease()
            raise ElectorUnavailable("the lease has ended between two requests")
        self._until = began + min(seconds, self._lease_seconds)
        return max((each.revision for each in picture.keys.values()), default=0)

    async def _watch(self) -> None:
        """Reads the group at each of its changes; failures are tried again until cancelled."""
        while True:
            with suppress(ElectorUnavailable):
                picture = await self._keys.get(self._prefix)
                self._apply(picture)
                self._watched = picture.revision
                async for revision in self._keys.watch(self._prefix, picture.revision + 1):
                    if revision > self._revision:
                        self._apply(await self._keys.get(self._prefix))
                    self._watched = max(self._watched, revision)
            await asyncio.sleep(self._lease_seconds * _RETRY)

    async def _change(self, seen: GroupView, state: GroupState) -> GroupView:
        """Makes a change to the group that was seen, once.

        A request whose answer is lost may still be under way. It is repeated as it is: only one of
        both can find the revision that they compare.
        """
        loop = asyncio.get_running_loop()
        give_up = loop.time() + self._lease_seconds
        state = state._replace(mark=f"{self.id}-{self._entropy.token(8).hex()}")
        if seen.version < self.view.version:
            raise self._changed()
        compare = Compare(self._group_key, seen.version)
        while True:
            try:
                made = await self._keys.transact([compare], [Put(compare.key, state.encode())])
                if made.is_done:
                    return self._decided(state, made.revision)
                picture = await self._keys.get(self._prefix)
                self._apply(picture)
                found = picture.keys.get(self._group_key)
                if found is not None and _state(found.value) == state:
                    return self.view
                raise self._changed()
            except ElectorUnavailable:
                if loop.time() >= give_up:
                    raise
            await asyncio.sleep(self._lease_seconds * _RETRY)

    def _changed(self) -> ElectionRefused:
        view = self.view
        return ElectionRefused(
            f"the group has changed meanwhile: member {view.master} is the master of epoch "
            f"{view.epoch}"
        )

    def _decided(self, state: GroupState, revision: int) -> GroupView:
        """Applies a change of our own, unless a newer one was read already."""
        if revision > self._revision:
            self._show(view_of(state, self.view.members, revision), revision)
        return self.view

    def _apply(self, picture: Picture) -> bool:
        """Takes over what was read; False if it is older than what is known."""
        if picture.revision < self._revision:
            return False
        members = _members(picture, self._prefix)
        found = picture.keys.get(self._group_key)
        if found is None:
            view = view_of(None, members, 0)
        else:
            view = view_of(_state(found.value), members, found.revision)
        if (view.epoch, view.set_epoch) < (self.view.epoch, self.view.set_epoch):
            return False
        self._show(view, picture.revision)
        return True

    def _show(self, view: GroupView, revision: int) -> None:
        self._revision = revision
        if view != self.view:
            self.view = view
            self.changes.rise(self.changes.value + 1)


async def _end(task: asyncio.Task[None] | None) -> None:
    if task is not None:
        task.cancel()
        await asyncio.wait([task])


def _state(text: str) -> GroupState:
    try:
        return GroupState.decode(text)
    except ValueError as error:
        raise ElectorUnavailable(f"the key `group` holds something else: {error}") from error


def _members(picture: Picture, prefix: str) -> Mapping[int, Member]:
    """The members of a picture by number. Keys that are none of ours are left out."""
    members = {}
    for number, record in MemberRecord.all_in(picture, prefix).items():
        is_alive = f"{prefix}alive/{number}" in picture.keys
        members[number] = record.member(number, is_alive=is_alive)
    return members
