"""What a user may do: entries that allow or deny actions on resources, and which of them decides.
Pure.

Of the entries that match a request, the one with the narrowest resource decides: a name before the
start of one, a longer start before a shorter one, a kind before all kinds. If none matches, the
request is denied. Entries of the default policy count only where no custom entry matches. A second
entry for the same resource replaces the first one.

RocketMQ 5.3.3 promises the same and does another thing: a shorter start of a name may go before a
longer one, the order in which policies were made may decide, and of two equal entries the one that
allows wins. Source: AclAuthorizationHandler, PolicyEntry, AclInfo of RocketMQ 5.3.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import NamedTuple, TypeVar

from sprocket.auth.resources import EVERYTHING, Resource, ResourcePattern
from sprocket.base.errors import UsageError
from sprocket.base.suggestions import shown

#: Entries of one user's policies, and networks of one entry, at most.
ENTRIES_MAX = 1_000
NETWORKS_MAX = 100


class Action(StrEnum):
    """What somebody does. The values are RocketMQ's words."""

    ALL = "All"
    PUB = "Pub"
    SUB = "Sub"
    CREATE = "Create"
    UPDATE = "Update"
    DELETE = "Delete"
    GET = "Get"
    LIST = "List"


class Decision(StrEnum):
    """What an entry says. The values are RocketMQ's words."""

    ALLOW = "Allow"
    DENY = "Deny"


class PolicyKind(StrEnum):
    """Which entries count first. The values are RocketMQ's words."""

    CUSTOM = "Custom"
    DEFAULT = "Default"


W = TypeVar("W", bound=StrEnum)


def word(kind: type[W], text: str) -> W:
    """The member of an enumeration that a text names, in upper or lower case.

    Raises:
        UsageError: there is none.
    """
    for each in kind:
        if each.value.lower() == text.strip().lower():
            return each
    raise UsageError(f"{shown(text)} is not one of {', '.join(kind)}")


class Need(NamedTuple):
    """A right that a request needs.

    Attributes:
        actions: any of these is enough.
    """

    resource: Resource
    actions: tuple[Action, ...]


@dataclass(frozen=True)
class PolicyEntry:
    """One line of a policy.

    Attributes:
        actions: at least one.
        networks: where requests may come from for the entry to count, as `10.0.0.0/8` or single
            addresses; empty for everywhere.
    """

    resource: ResourcePattern
    actions: frozenset[Action]
    decision: Decision
    networks: tuple[str, ...] = ()
    kind: PolicyKind = PolicyKind.CUSTOM

    @classmethod
    def of(
        cls,
        resource: str,
        actions: Iterable[str],
        decision: str,
        networks: Sequence[str] = (),
        kind: str = PolicyKind.CUSTOM,
    ) -> PolicyEntry:
        """An entry from texts.

        Raises:
            UsageError: one of them is not valid.
        """
        found = frozenset(word(Action, each) for each in actions)
        if not found:
            raise UsageError(f"an entry for {resource} needs an action, such as Pub")
        if len(networks) > NETWORKS_MAX:
            raise UsageError(f"an entry has at most {NETWORKS_MAX} networks")
        entry = cls(
            ResourcePattern.parse(resource),
            found,
            word(Decision, decision),
            tuple(networks),
            word(PolicyKind, kind),
        )
        try:
            entry._parsed  # noqa: B018  # the networks are checked when they are parsed
        except ValueError as error:
            raise UsageError(f"a network is 10.0.0.0/8 or a single address: {error}") from error
        return entry

    @cached_property
    def _parsed(self) -> tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...]:
        return tuple(ipaddress.ip_network(each, strict=False) for each in self.networks)

    def counts(self, action: Action, source: str) -> bool:
        """Whether the entry is about an action of somebody.

        Args:
            source: the IP address that the request comes from.
        """
        if action not in self.actions and Action.ALL not in self.actions:
            return False
        return self._is_from(source)

    def _is_from(self, source: str) -> bool:
        if not self.networks:
            return True
        try:
            address = ipaddress.ip_address(source.partition("%")[0])
        except ValueError:
            return False
        mapped = getattr(address, "ipv4_mapped", None)
        return any((mapped or address) in network for network in self._parsed)

    def __str__(self) -> str:
        actions = ",".join(sorted(self.actions))
        sources = f" from {','.join(self.networks)}" if self.networks else ""
        default = " (default)" if self.kind == PolicyKind.DEFAULT else ""
        return f"{self.decision} {actions} on {self.resource}{sources}{default}"


class Judgement(NamedTuple):
    """Whether something is allowed, and why.

    Attributes:
        entry: the entry that decides; None if none matches.
        action: the action that was judged.
        why: what decides, in words, where that is no entry; else empty.
    """

    is_allowed: bool
    entry: PolicyEntry | None
    action: Action
    why: str = ""


class UserPolicies:
    """The entries of one user. It is never changed: a change makes a new one."""

    __slots__ = ("_entries", "_lengths")

    def __init__(self, entries: Iterable[PolicyEntry] = ()) -> None:
        self._entries: Mapping[tuple[PolicyKind, ResourcePattern], PolicyEntry] = {
            (each.kind, each.resource): each for each in entries
        }
        #: How long the starts of names are that entries have, longest first.
        self._lengths = sorted(
            {len(each.name) for _, each in self._entries if each.is_prefix}, reverse=True
        )

    @property
    def entries(self) -> Sequence[PolicyEntry]:
        """The entries, in the order in which they were made."""
        return tuple(self._entries.values())

    def with_entries(self, entries: Iterable[PolicyEntry]) -> UserPolicies:
        """These entries too: one of the same kind and resource is replaced.

        Raises:
            UsageError: there are too many.
        """
        found = UserPolicies([*self._entries.values(), *entries])
        if len(found._entries) > ENTRIES_MAX:
            raise UsageError(f"a user has at most {ENTRIES_MAX} entries in policies")
        return found

    def without(self, kind: PolicyKind, resource: ResourcePattern) -> UserPolicies:
        """The others, without the entry for a resource."""
        return UserPolicies(each for key, each in self._entries.items() if key != (kind, resource))

    def judge(self, need: Need, source: str) -> Judgement:
        """Whether a request may have what it needs; one of the actions is enough.

        Args:
            source: the IP address that it comes from.
        """
        judgement = Judgement(False, None, need.actions[0])
        for action in need.actions:
            found = self._judge(need.resource, action, source)
            if found.is_allowed:
                return found
            if judgement.entry is None:
                judgement = found
        return judgement

    # One resource has one entry of each kind at most, so the first that is about the request
    # decides, and a thousand entries cost no more than ten.
    def _judge(self, resource: Resource, action: Action, source: str) -> Judgement:
        for kind in PolicyKind:
            for pattern in self._patterns(resource):
                entry = self._entries.get((kind, pattern))
                if entry is not None and entry.counts(action, source):
                    return Judgement(entry.decision == Decision.ALLOW, entry, action)
        return Judgement(False, None, action)

    def _patterns(self, resource: Resource) -> Iterator[ResourcePattern]:
        """The patterns that are about a resource, narrowest first."""
        kind, name = resource
        yield ResourcePattern(kind, name, False)
        for length in self._lengths:
            if length <= len(name):
                yield ResourcePattern(kind, name[:length], True)
        yield EVERYTHING
