"""The configurations of a broker's consumer groups.

An unknown group is created at its first use if `auto_create_groups` is on. An operator can forbid
a group to read single topics.

File: `subscriptionGroup.json`,
`{"dataVersion":{...},"forbiddenTable":{group:{topic:bits}},"subscriptionGroupTable":{group:{...}}}`.
Source: SubscriptionGroupManager of RocketMQ 5.x.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from sprocket.base.errors import InvalidParameter, SystemBusy
from sprocket.base.ports import Clock
from sprocket.broker.settings import BrokerSettings
from sprocket.broker.tables.config_table import ConfigTable
from sprocket.message.topic import SYSTEM_GROUP_PREFIX, fault_of_consumer_group
from sprocket.protocol.bodies import GroupConfig
from sprocket.quotas.creation import check_creation
from sprocket.store.state.snapshot import ConvertedRows

#: Groups that RocketMQ's own tools and gateways use. Source: SubscriptionGroupManager.init.
OWN_GROUPS = (
    "TOOLS_CONSUMER",
    "FILTERSRV_CONSUMER",
    "SELF_TEST_C_GROUP",
    "CID_ONS-HTTP-PROXY",
    "CID_ONSAPI_PULL",
    "CID_ONSAPI_PERMISSION",
    "CID_ONSAPI_OWNER",
    "CID_RMQ_SYS_TRANS",
)

#: The bit of the forbidden table that forbids reading. Source: PermName.INDEX_PERM_READ.
_READ_FORBIDDEN = 1 << 2

#: Retry queues of one group at most.
RETRY_QUEUES_MAX = 1024


class Groups(ConfigTable[GroupConfig]):
    """All consumer groups of a broker."""

    def __init__(
        self, settings: BrokerSettings, *, clock: Clock, on_change: Callable[[str], None]
    ) -> None:
        own = {name: GroupConfig(group_name=name) for name in OWN_GROUPS}
        super().__init__(own, clock=clock, on_change=on_change)
        self._settings = settings
        self._forbidden: dict[str, dict[str, int]] = {}

    def find(self, name: str) -> GroupConfig | None:
        """A group; created now if it is unknown and may be created. None if it may not.

        Raises:
            SystemBusy: there are too many groups.
        """
        known = self.by_name.get(name)
        if known is not None:
            return known
        is_on = self._settings.config.auto_create_groups
        if fault_of_consumer_group(name) or not (is_on or name.startswith(SYSTEM_GROUP_PREFIX)):
            return None
        return self._store(GroupConfig(group_name=name))

    def put(self, group: GroupConfig) -> None:
        """Creates or changes a group for an operator.

        Raises:
            InvalidParameter: its name or number of retry queues is invalid.
            SystemBusy: there are too many groups.
        """
        if fault := fault_of_consumer_group(group.group_name):
            raise InvalidParameter(fault)
        if not 0 <= group.retry_queue_nums <= RETRY_QUEUES_MAX:
            raise InvalidParameter(
                f"a group has 0 to {RETRY_QUEUES_MAX} retry queues, not {group.retry_queue_nums}"
            )
        self._store(group)

    def remove(self, name: str) -> bool:
        """Deletes a group.

        Returns:
            Whether there was one.
        """
        was_forbidden = self._forbidden.pop(name, None) is not None
        was_there = self.by_name.pop(name, None) is not None
        if was_there or was_forbidden:
            self._changed(name)
        return was_there

    def forbid(self, name: str, topic: str, *, readable: bool) -> None:
        """Forbids a group to read a topic, or allows it again."""
        bits = self._forbidden.get(name, {}).get(topic, 0)
        bits = bits & ~_READ_FORBIDDEN if readable else bits | _READ_FORBIDDEN
        if bits:
            self._forbidden.setdefault(name, {})[topic] = bits
        else:
            topics = self._forbidden.get(name, {})
            topics.pop(topic, None)
            if not topics:
                self._forbidden.pop(name, None)
        self._changed(name)

    def is_forbidden(self, name: str, topic: str) -> bool:
        """Whether a group is forbidden to read a topic."""
        return bool(
            self._forbidden and self._forbidden.get(name, {}).get(topic, 0) & _READ_FORBIDDEN
        )

    def copy(self, name: str, group: GroupConfig | None, forbidden: Mapping[str, int]) -> None:
        """Makes a group as a master has it; None if it is gone.

        Args:
            forbidden: the bits of the topics that it may not read.
        """
        known = (self.by_name.get(name), self._forbidden.get(name) or {})
        if known == (group, forbidden):
            return
        self._forbidden.pop(name, None)
        if forbidden:
            self._forbidden[name] = dict(forbidden)
        self._replace(name, group)

    def _store(self, group: GroupConfig) -> GroupConfig:
        limit = self._settings.config.groups_max
        if group.group_name not in self.by_name:
            if len(self.by_name) >= limit:
                raise SystemBusy(f"the broker has {len(self.by_name)} consumer groups, its limit")
            check_creation("new_groups")
        self._replace(group.group_name, group)
        return group

    @property
    def forbidden(self) -> dict[str, dict[str, int]]:
        """Forbidden bits, by group and topic."""
        return self._forbidden

    def to_json(self) -> dict[str, Any]:
        """The table as JSON for its file."""
        return {
            "dataVersion": msgspec.to_builtins(self.version),
            "forbiddenTable": {name: dict(topics) for name, topics in self._forbidden.items()},
            "subscriptionGroupTable": ConvertedRows(dict(self.by_name), msgspec.to_builtins),
        }

    def load(self, state: Mapping[str, Any]) -> None:
        """Loads the table from the JSON of its file.

        Raises:
            msgspec.ValidationError: the JSON has another form.
        """
        table = msgspec.convert(
            state.get("subscriptionGroupTable") or {}, dict[str, GroupConfig], strict=False
        )
        self._forbidden = msgspec.convert(
            state.get("forbiddenTable") or {}, dict[str, dict[str, int]], strict=False
        )
        self._load_version(state)
        for name, group in table.items():
            group.group_name = name
            self.by_name[name] = group
