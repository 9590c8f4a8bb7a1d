"""Makes a slave's tables as those of its master: rows that changed, or whole tables.

A slave gives what it copied to nobody who could change it, so a row is simply replaced by the
master's. Offsets too: the master alone decides whether a group goes back.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping

import msgspec

from sprocket.auth.accounts import User, entries_in
from sprocket.auth.policies import UserPolicies
from sprocket.broker.tables.changes import (
    ACCOUNTS,
    FILTERS,
    GROUPS,
    LEASES,
    MODES,
    OFFSETS,
    ORDERS,
    TABLES,
    TOPICS,
)
from sprocket.broker.tables.files import StateFiles
from sprocket.broker.tables.tables import Tables
from sprocket.filterserver.uploads import Uploaded, key_in, key_text
from sprocket.protocol.bodies import (
    ChangedState,
    DelayOffsets,
    GroupTable,
    OffsetTable,
    RequestModes,
    TopicTable,
)
from sprocket.store.store import Store

#: Rows that are replaced before other tasks run on the loop.
_ROWS_AT_ONCE = 256


class CopiedTables:
    """The tables of a slave, and what of its master's was listed.

    Args:
        tables: are changed.
        files: are saved after changes.
        store: loses the queues of deleted topics.
    """

    def __init__(self, tables: Tables, files: StateFiles, store: Store) -> None:
        self._tables = tables
        self._files = files
        self._store = store
        #: Keys of the rows that a listing has shown so far, by table.
        self._listed: dict[str, set[str]] = {}

    def begin_listing(self) -> None:
        """Forgets what was listed: the master sends all rows now."""
        self._listed = {name: set() for name in TABLES}

    # All of it happens in one turn of the loop: a body has a bounded number of rows.
    def apply(self, state: ChangedState) -> None:
        """Replaces the rows in a master's reply.

        Raises:
            StoreError: the disk refuses to delete a topic.
        """
        tables = self._tables
        self._store.replica.delete_before(state.deletions)
        for name, config in state.topics.items():
            tables.mappings.copy(name, state.mappings.get(name))
            tables.topics.copy(name, config)
        for name, group in state.groups.items():
            tables.groups.copy(name, group, state.forbidden.get(name) or {})
        for key, row in state.rows.items():
            tables.offsets.copy_row(key, row)
        for key, offsets in (*state.rows.items(), *state.offsets.items()):
            tables.offsets.copy_offsets(key, offsets, state.resets.get(key, ()))
        self._apply_popped(state)
        for name, leases in state.leases.items():
            tables.lock_table.copy(name, leases)
        if state.leases:
            self._files.locks.changed()
        for text, versions in state.filters.items():
            tables.filters.uploads.copy(
                key_in(text),
                [msgspec.convert(each, Uploaded, from_attributes=True) for each in versions],
            )
        tables.progress.copy(state.delays, state.delays_log_offset)
        for table, names in self._names_in(state):
            if table in self._listed:
                self._listed[table] |= names

    # The marks come with the last rows only: until then the log is read from the former ones on.
    def _apply_popped(self, state: ChangedState) -> None:
        tables = self._tables
        popped, orders = tables.offsets.popped, tables.pop_orders
        # A listing shows whole rows: what it leaves out of one is gone.
        is_whole = bool(self._listed)
        for key in state.flying.keys() | state.voids.keys():
            gone = dict.fromkeys(popped.flying(key), 0) if is_whole else {}
            popped.copy(key, gone | state.flying.get(key, {}), state.voids.get(key, {}))
        for key, rows in state.orders.items():
            orders.copy(key, (dict.fromkeys(orders.row(key)) if is_whole else {}) | rows)
        for topic, modes in state.modes.items():
            tables.request_modes.copy(topic, modes)
        self._apply_accounts(state)
        if state.marks is not None and state.marks != popped.marks:
            popped.marks = orders.marks = state.marks
            tables.offsets.is_changed = orders.is_changed = True

    def _apply_accounts(self, state: ChangedState) -> None:
        if not state.has_accounts:
            self._listed.pop(ACCOUNTS, None)
        for name, row in state.accounts.items():
            if row is None:
                self._tables.accounts.copy(name, None, UserPolicies())
            else:
                entries = entries_in(row.acl) if row.acl.policies else ()
                user = User.of_body(name, row.user)
                self._tables.accounts.copy(name, user, UserPolicies(entries))

    def _names_in(self, state: ChangedState) -> Iterable[tuple[str, set[str]]]:
        yield TOPICS, set(state.topics)
        yield GROUPS, set(state.groups)
        yield OFFSETS, set(state.rows)
        yield LEASES, set(state.leases)
        yield FILTERS, set(state.filters)
        yield ORDERS, set(state.orders)
        yield MODES, set(state.modes)
        yield ACCOUNTS, set(state.accounts)

    async def end_listing(self) -> None:
        """Removes the rows that the master did not list, if it has listed them."""
        tables, listed = self._tables, self._listed
        if not listed:
            return
        self._listed = {}
        await self._keep_topics(listed[TOPICS])
        await self._keep_groups(listed[GROUPS])
        await self._keep_offsets(listed[OFFSETS])
        for name in set(tables.lock_table.copied()) - listed[LEASES]:
            tables.lock_table.copy(name, {})
        orders, modes = tables.pop_orders, tables.request_modes
        for key in set(orders.names()) - listed[ORDERS]:
            orders.copy(key, dict.fromkeys(orders.row(key)))
        for topic in modes.by_topic.keys() - listed[MODES]:
            modes.copy(topic, {})
        accounts = tables.accounts
        if ACCOUNTS in listed:  # else the master has shown none
            for name in accounts.users.keys() - listed[ACCOUNTS]:
                accounts.copy(name, None, UserPolicies())
        uploads = tables.filters.uploads
        for upload in [key for key in uploads.all_keys() if key_text(key) not in listed[FILTERS]]:
            uploads.copy(upload, ())

    async def _keep_topics(self, kept: set[str]) -> None:
        topics, mappings = self._tables.topics, self._tables.mappings
        async for name in _in_turns(topics.by_name.keys() - kept):
            topics.copy(name, None)
            mappings.remove(name)

    async def _keep_groups(self, kept: set[str]) -> None:
        groups = self._tables.groups
        async for name in _in_turns((groups.by_name.keys() | groups.forbidden.keys()) - kept):
            groups.copy(name, None, {})

    async def _keep_offsets(self, kept: Iterable[str]) -> None:
        offsets = self._tables.offsets
        async for key in _in_turns(set(offsets.names()) - set(kept)):
            offsets.copy_row(key, {})

    # Whole tables, as RocketMQ's masters send them.

    async def replace_topics(self, table: TopicTable) -> None:
        """Makes the topics as in a master's table."""
        async for name in _in_turns(table.topic_config_table):
            self._tables.topics.copy(name, table.topic_config_table[name])
        self._replace_mappings(table)
        await self._keep_topics(set(table.topic_config_table))

    def _replace_mappings(self, table: TopicTable) -> None:
        wanted, mappings = table.topic_queue_mapping_detail_map or {}, self._tables.mappings
        for name in mappings.by_topic.keys() | wanted.keys():
            mappings.copy(name, wanted.get(name))

    async def replace_groups(self, table: GroupTable) -> None:
        """Makes the groups as in a master's table."""
        async for name in _in_turns(table.subscription_group_table):
            forbidden: Mapping[str, int] = table.forbidden_table.get(name) or {}
            self._tables.groups.copy(name, table.subscription_group_table[name], forbidden)
        await self._keep_groups(set(table.subscription_group_table) | set(table.forbidden_table))

    async def replace_offsets(self, table: OffsetTable) -> None:
        """Makes the offsets as in a master's table."""
        async for key in _in_turns(table.offset_table):
            self._tables.offsets.copy_row(key, table.offset_table[key])
        await self._keep_offsets(table.offset_table)
        self._tables.offsets.popped.marks = None

    def replace_modes(self, table: RequestModes) -> None:
        """Makes the request modes as in a master's table."""
        modes, wanted = self._tables.request_modes, table.message_request_mode_map
        for topic in modes.by_topic.keys() | wanted.keys():
            modes.copy(topic, wanted.get(topic, {}))

    def replace_delays(self, table: DelayOffsets) -> None:
        """Makes the progress of the delay levels as in a master's table."""
        self._tables.progress.copy(table.offset_table, None)

    async def saved(self) -> None:
        """Returns when changed topics, groups and users are saved, or the save has failed."""
        await self._files.mappings.saved()
        await self._files.accounts.saved()
        await self._files.topics.saved()
        await self._files.groups.saved()


async def _in_turns(names: Iterable[str]) -> AsyncIterator[str]:
    """The names, from a copy, with a turn of the event loop for some of them each."""
    for number, name in enumerate(list(names)):
        if number % _ROWS_AT_ONCE == 0:
            await asyncio.sleep(0)
        yield name
