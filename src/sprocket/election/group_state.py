"""The state of a group as one value of a key, and what may become of it. Pure.

A claim takes the lost master out of the in-sync set and keeps the others: all of them have what was
acknowledged. So sends that wait for all of the set go on at once where two are left.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from sprocket.election.elector import ElectionRefused, GroupView, Member
from sprocket.election.leased_keys import Picture

_NUMBER_MAX = (1 << 63) - 1


class GroupState(NamedTuple):
    """What is decided: the value of the key `group`.

    Attributes:
        epoch, master, in_sync, set_epoch: as in `GroupView`.
        mark: of the change that made it, by which the one who asked recognises it.
    """

    epoch: int
    master: int
    in_sync: frozenset[int]
    set_epoch: int
    mark: str = ""

    def encode(self) -> str:
        """As the text of its key."""
        return json.dumps(
            {
                "epoch": self.epoch,
                "master": self.master,
                "in_sync": sorted(self.in_sync),
                "set_epoch": self.set_epoch,
                "mark": self.mark,
            }
        )

    @classmethod
    def decode(cls, text: str) -> GroupState:
        """From the text of its key.

        Raises:
            ValueError: it is something else.
        """
        fields = _object(text)
        in_sync = fields.get("in_sync")
        if not isinstance(in_sync, list):
            raise ValueError("in_sync is no list")
        return cls(
            epoch=_number(fields, "epoch"),
            master=_number(fields, "master"),
            in_sync=frozenset(_checked(each, "in_sync") for each in in_sync),
            set_epoch=_number(fields, "set_epoch"),
            mark=str(fields.get("mark", "")),
        )


class MemberRecord(NamedTuple):
    """What is kept of a member for ever: the value of a key under `members`."""

    address: str
    replication_address: str
    priority: int
    check_code: str

    def encode(self) -> str:
        """As the text of its key."""
        return json.dumps(self._asdict())

    @classmethod
    def decode(cls, text: str) -> MemberRecord:
        """From the text of its key.

        Raises:
            ValueError: it is something else.
        """
        fields = _object(text)
        priority = fields.get("priority", 0)
        if not isinstance(priority, int):
            raise ValueError("priority is no number")
        return cls(
            address=str(fields.get("address", "")),
            replication_address=str(fields.get("replication_address", "")),
            priority=priority,
            check_code=str(fields.get("check_code", "")),
        )

    @classmethod
    def all_in(cls, picture: Picture, prefix: str) -> dict[int, MemberRecord]:
        """Those of a group by number. Keys that hold something else are left out."""
        beginning = f"{prefix}members/"
        records = {}
        for key, found in picture.keys.items():
            number = key.removeprefix(beginning)
            if key.startswith(beginning) and number.isascii() and number.isdigit():
                with suppress(ValueError):
                    records[int(number)] = cls.decode(found.value)
        return records

    def member(self, number: int, *, is_alive: bool) -> Member:
        """As views show it."""
        return Member(number, self.address, self.replication_address, is_alive, self.priority)


def claimed(view: GroupView, me: int, *, last_epoch: int, is_unclean: bool) -> GroupState:
    """What a group becomes when a member takes the lead.

    Args:
        view: the group before.
        me: who takes the lead.
        last_epoch: of the member's own log. It is above the group's only where the elector's data
            was lost; epochs rise even then.
        is_unclean: whether a member outside of the in-sync set may lead if none of the set lives.

    Raises:
        ElectionRefused: this member may have missed what was acknowledged.
    """
    if not view.epoch:
        in_sync = frozenset({me})
    elif me in view.in_sync:
        in_sync = (view.in_sync - {view.master}) | {me}
    elif not is_unclean:
        raise ElectionRefused(
            f"member {me} may not lead: it is not among those that have everything that was "
            f"acknowledged ({_shown(view.in_sync)})"
        )
    elif living := [each for each in view.in_sync if _is_alive(view, each)]:
        raise ElectionRefused(
            f"member {me} may not lead: {_shown(living)}, with everything that was acknowledged, "
            "is alive"
        )
    else:
        in_sync = frozenset({me})
    epoch = max(view.epoch, last_epoch) + 1
    return GroupState(epoch, me, in_sync, view.set_epoch + 1)


def with_in_sync(view: GroupView, me: int, members: frozenset[int]) -> GroupState:
    """What a group becomes when its master changes the in-sync set.

    Raises:
        ElectionRefused: this is not the master, it is not in the set, or members are unknown.
    """
    if view.master != me:
        raise ElectionRefused(
            f"member {me} is not the master of epoch {view.epoch}: {view.master} is"
        )
    if me not in members:
        raise ElectionRefused(f"master {me} is always in sync")
    if unknown := members - view.members.keys():
        raise ElectionRefused(f"{_shown(unknown)} are no members of the group")
    return GroupState(view.epoch, me, members, view.set_epoch + 1)


def handed_over(view: GroupView, to: int, *, is_unclean: bool) -> GroupState:
    """What a group becomes when another member is made its master.

    The old master leaves the set, as after its loss: it comes back when it follows the new one.

    Args:
        view: the group before.
        to: the new master.
        is_unclean: whether it may be outside of the in-sync set, or seem dead. Then whatever it
            does not have is lost.

    Raises:
        ElectionRefused: that member is unknown, seems dead, or is not in sync.
    """
    if to not in view.members:
        raise ElectionRefused(
            f"{to} is no member of the group; its members are {_shown(view.members)}"
        )
    if not is_unclean and not view.members[to].is_alive:
        raise ElectionRefused(f"member {to} may not lead: it does not seem to live")
    if to in view.in_sync:
        in_sync = (view.in_sync - {view.master}) | {to}
    elif is_unclean:
        in_sync = frozenset({to})
    else:
        raise ElectionRefused(
            f"member {to} may not lead: it is not among those that have everything that was "
            f"acknowledged ({_shown(view.in_sync)})"
        )
    return GroupState(view.epoch + 1, to, in_sync, view.set_epoch + 1)


def view_of(state: GroupState | None, members: Mapping[int, Member], version: int) -> GroupView:
    """What an elector shows of a group.

    Args:
        state: what is decided; None if nothing is.
        members: all known members by number.
        version: the revision of the state's key, 0 without one.
    """
    if state is None:
        return GroupView(members=members)
    return GroupView(
        state.epoch, state.master, state.in_sync, state.set_epoch, members, version=version
    )


def _is_alive(view: GroupView, number: int) -> bool:
    member = view.members.get(number)
    return member is not None and member.is_alive


def _shown(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, sorted(numbers))) or "none"


def _object(text: str) -> dict[str, Any]:
    fields = json.loads(text)
    if not isinstance(fields, dict):
        raise ValueError("no object")
    return fields


def _number(fields: Mapping[str, Any], name: str) -> int:
    return _checked(fields.get(name), name)


def _checked(value: Any, name: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= _NUMBER_MAX:
        raise ValueError(f"{name} is no number")
    return value
