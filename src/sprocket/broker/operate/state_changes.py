"""What slaves copy besides the log: changes of the tables (30303), progress of delay levels (45).

RocketMQ's slaves ask for whole tables: topics (21), groups (201), offsets (43), modes (402), and
for the progress of the timers (60, 61). Ours ask for what has changed since they asked last.

The state in a reply may refer to messages of the log, so the reply names the log's end: a slave
applies it when its own log is there. So at a slave no position lies beyond the messages that it
has, and no delayed message counts as delivered whose delivery it does not have.
Source of 45: ScheduleMessageService.encode of RocketMQ 5.x.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable

import msgspec

from sprocket.auth.accounts import acl_body
from sprocket.base.deadline import Deadline
from sprocket.broker.dispatch import Endpoints
from sprocket.broker.members.followers import Follower, Followers
from sprocket.broker.tables.changes import (
    ACCOUNTS,
    FILTERS,
    GROUPS,
    LEASES,
    MODES,
    OFFSETS,
    ORDERS,
    TOPICS,
    WHOLE,
    Change,
    Listing,
)
from sprocket.broker.tables.tables import Tables
from sprocket.delay.timers.timers import Timers
from sprocket.filterserver.uploads import key_in, key_text
from sprocket.protocol.bodies import (
    ChangedState,
    CopiedAccount,
    CopiedFilter,
    DataVersion,
    DelayOffsets,
    TimerState,
)
from sprocket.protocol.codes import OwnRequestCode, RequestCode
from sprocket.protocol.command import Command, Reply
from sprocket.protocol.requests.replica import StateChanges
from sprocket.remoting.transport import Peer
from sprocket.store.store import Store

#: Rows of a reply at most; of a large row each offset counts as one.
_ROWS_MAX = 4_096
#: A reply is held for changes at most so long, ms.
_WAIT_MS_MAX = 1_000


class StateRequests:
    """Answers slaves.

    Args:
        timers: the timers; None if they are switched off.
        may_have_users: whether a slave's request shows that it may have passwords: a super user has
            signed it.
    """

    def __init__(
        self,
        tables: Tables,
        store: Store,
        timers: Timers | None,
        *,
        followers: Followers,
        may_have_users: Callable[[Command], bool],
    ) -> None:
        self._may_have_users = may_have_users
        self._tables = tables
        self._store = store
        self._timers = timers
        self._followers = followers
        self._journal = followers.journal

    def endpoints(self) -> Endpoints:
        """The endpoints, by request code."""
        return {
            OwnRequestCode.STATE_CHANGES: self.changes,
            RequestCode.GET_ALL_DELAY_OFFSET: self.delays,
        }

    def delays(self, command: Command, peer: Peer) -> Reply:
        """The progress of the delay levels."""
        progress = self._tables.progress
        body = DelayOffsets(data_version=DataVersion(), offset_table=progress.by_level())
        return Reply(body=body.encode())

    def changes(self, command: Command, peer: Peer) -> Reply | Awaitable[Reply]:
        """What has changed since the slave's version, now or when something changes."""
        header = command.read(StateChanges)
        follower = self._followers.heard(peer, header.broker_id)
        has_accounts = self._may_have_users(command)
        if not self._journal.has(header.origin, header.since):
            at = header.listing_at if header.origin == self._journal.origin else -1
            return self._listed(follower, at, has_accounts)
        follower.has_version(header.since)
        wait_ms = min(header.wait_ms, _WAIT_MS_MAX)
        is_much = self._journal.version - header.since >= _ROWS_MAX
        if wait_ms > 0 and not is_much and self._followers.definitions.value <= header.since:
            return self._held(header.since, wait_ms, has_accounts)
        return self._since(header.since, has_accounts)

    # A changed topic ends the wait. Offsets change all the time: they come together at its end.
    async def _held(self, since: int, wait_ms: int, has_accounts: bool) -> Reply:
        await self._followers.definitions.reach(since + 1, Deadline.after_ms(wait_ms))
        return self._since(since, has_accounts)

    def _since(self, version: int, has_accounts: bool) -> Reply:
        if not self._journal.has(self._journal.origin, version):  # too much happened meanwhile
            return self._reply(ChangedState(version=-1, is_more=True))
        some = self._journal.since(version, _ROWS_MAX)
        state = ChangedState(has_accounts=has_accounts)
        done = self._put(state, some)
        state.version = version + done
        state.is_more = state.version < self._journal.version
        if not state.is_more:
            state.marks = self._tables.offsets.popped.marks
        return self._reply(state)

    def _listed(self, follower: Follower, at: int, has_accounts: bool) -> Reply:
        """The next page of a listing, or the first one of a new listing."""
        listing = None if at < 0 else follower.listing
        state = ChangedState(
            version=-1, is_first=listing is None, is_more=True, has_accounts=has_accounts
        )
        if listing is None:
            self._journal.follow()
            listing, at = self._listing(), 0
            follower.list_rows(listing)
        at += self._put(state, listing.page(at, _ROWS_MAX))
        if at < len(listing):
            state.listing_at = at
        else:
            state.version = listing.version
        return self._reply(state)

    def _listing(self) -> Listing:
        tables, deleted = self._tables, self._store.replica.deleted_topics()
        popped = tables.offsets.popped
        names = {
            TOPICS: list({**tables.topics.by_name, **dict.fromkeys(deleted)}),
            GROUPS: list({**tables.groups.by_name, **tables.groups.forbidden}),
            OFFSETS: list(dict.fromkeys((*tables.offsets.names(), *popped.void_keys()))),
            LEASES: tables.locks.groups(),
            FILTERS: list(map(key_text, tables.filters.uploads.all_keys())),
            ORDERS: tables.pop_orders.names(),
            MODES: list(tables.request_modes.by_topic),
            ACCOUNTS: list(tables.accounts.users),
        }
        return Listing(names, self._journal.version)

    def _reply(self, state: ChangedState) -> Reply:
        progress = self._tables.progress
        state.origin = self._journal.origin
        state.log_end = self._store.log_end
        state.delays = progress.by_level()
        state.delays_log_offset = progress.log_offset
        if self._timers is not None and (at := self._timers.progress) is not None:
            state.timers = TimerState(
                slot_ms=at.slot_ms, delivered_from=at.delivered_from, queue_then=at.queue_then
            )
        return Reply(body=state.encode())

    # Rows.

    def _put(self, state: ChangedState, changes: Iterable[Change]) -> int:
        """Puts rows into a body until it is full; returns how many of the changes were."""
        done = weight = 0
        for change in changes:
            weight += self._put_one(state, change)
            done += 1
            if weight >= _ROWS_MAX:
                break
        return done

    def _put_one(self, state: ChangedState, change: Change) -> int:
        """Puts a row into a body; returns its weight."""
        table, name, part = change
        tables = self._tables
        if table == OFFSETS:
            return self._put_offsets(state, name, part)
        if table == ORDERS:
            return self._put_orders(state, name, part)
        if table == TOPICS:
            state.topics[name] = tables.topics.get(name)
            if deleted := self._store.replica.deleted_at(name):
                state.deletions[name] = deleted
            if (detail := tables.mappings.get(name)) is not None:
                state.mappings[name] = detail
                return 1 + sum(map(len, detail.hosted_queues.values()))
        elif table == GROUPS:
            state.groups[name] = tables.groups.get(name)
            if forbidden := tables.groups.forbidden.get(name):
                state.forbidden[name] = dict(forbidden)
                return 1 + len(forbidden)
        elif table == LEASES:
            held = state.leases[name] = tables.locks.held_in(name)
            return 1 + sum(map(len, held.values()))
        elif table == MODES:
            modes = state.modes[name] = dict(tables.request_modes.by_topic.get(name, {}))
            return 1 + len(modes)
        elif table == ACCOUNTS:
            return self._put_account(state, name)
        else:
            versions = tables.filters.uploads.versions(key_in(name))
            state.filters[name] = [
                msgspec.convert(each, CopiedFilter, from_attributes=True) for each in versions
            ]
            return 1 + sum(len(each.source) for each in versions) // 64
        return 1

    def _put_account(self, state: ChangedState, name: str) -> int:
        accounts = self._tables.accounts
        if not state.has_accounts:
            return 1
        user, policies = accounts.users.get(name), accounts.policies_of(name)
        state.accounts[name] = None
        if user is not None:
            body, acl = user.to_body(has_password=True), acl_body(name, policies)
            state.accounts[name] = CopiedAccount(user=body, acl=acl)
        return 1 + len(policies.entries)

    def _put_offsets(self, state: ChangedState, key: str, part: int) -> int:
        offsets = self._tables.offsets
        row = offsets.row(key)
        if part == WHOLE or part not in row:
            if key not in state.rows:
                state.rows[key] = dict(row)
                state.offsets.pop(key, None)
        elif key not in state.rows:
            state.offsets.setdefault(key, {})[part] = row[part]
        if resets := offsets.resets_of(key):
            state.resets[key] = list(resets)
        self._put_popped(state, key, part)
        return 1 + (len(row) if part == WHOLE else 0)

    def _put_popped(self, state: ChangedState, key: str, part: int) -> None:
        """Puts what belongs to a row of offsets that is popped."""
        popped = self._tables.offsets.popped
        flying = popped.flying(key)
        if part == WHOLE:
            state.flying[key] = dict(flying)
        elif key not in state.rows and (flying or popped.marks):
            state.flying.setdefault(key, {})[part] = flying.get(part, 0)
        if voids := popped.voids(key):
            state.voids[key] = dict(voids)

    def _put_orders(self, state: ChangedState, key: str, part: int) -> int:
        rows = self._tables.pop_orders.row(key)
        numbers = rows if part == WHOLE else (part,)
        into = state.orders.setdefault(key, {})
        for number in numbers:
            row = rows.get(number)
            into[number] = None if row is None else msgspec.to_builtins(row, str_keys=True)
        return 1 + 4 * len(numbers)
