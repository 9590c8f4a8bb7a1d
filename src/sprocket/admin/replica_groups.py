"""Replica groups: the brokers of one name, which of them leads, and how far the others are."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from sprocket.admin.caller import Caller
from sprocket.base.errors import (
    ReplyError,
    RequestNotSupported,
    TransportError,
    UsageError,
)
from sprocket.protocol.bodies import BrokerData, GroupMemberFacts, GroupStateBody, ReplicaStateBody
from sprocket.protocol.codes import MASTER
from sprocket.protocol.requests.replica import GroupStateOf, HandOver, ReplicaState


class ReplicaMember(NamedTuple):
    """One broker of a group. What is not known is None.

    Attributes:
        number: its number in the group; without an elector the one that is set.
        role: `master` or `slave`.
        is_alive: whether it answered; of one that is not registered, what the elector says.
        is_in_sync: whether it has everything that was acknowledged, as its elector says.
        epoch: of the master that it follows, or is.
        log_end, confirmed: log offsets: where its log ends, and up to where readers see it.
        behind_bytes, behind_seconds: what it does not have of the master's log, and by how much
            its newest record is older than the master's.
        priority: the lowest leads, of several that could.
    """

    number: int
    address: str
    role: str | None
    is_alive: bool
    is_in_sync: bool | None = None
    epoch: int | None = None
    log_end: int | None = None
    confirmed: int | None = None
    behind_bytes: int | None = None
    behind_seconds: float | None = None
    priority: int | None = None


class ReplicaGroup(NamedTuple):
    """The brokers of one name.

    Attributes:
        elector: who decides which of them leads, as its setting says; None without one.
        epoch: of the master; None without an elector.
        master: the number of the master; None if none is known.
        in_sync: numbers of the members that have everything that was acknowledged.
        members: all that are registered or known to the elector, by number.
    """

    cluster: str
    broker: str
    elector: str | None
    epoch: int | None
    master: int | None
    in_sync: list[int]
    members: list[ReplicaMember]

    @property
    def leader(self) -> ReplicaMember | None:
        """The master, if it is known."""
        return next((each for each in self.members if each.role == "master"), None)


class _Answer(NamedTuple):
    """What a registered broker said: its own state, that of RocketMQ's kind, or nothing."""

    registered: int
    address: str
    is_reachable: bool
    state: GroupStateBody | None


async def replica_groups(
    caller: Caller, *, cluster: str | None = None, broker: str | None = None
) -> list[ReplicaGroup]:
    """All groups, those of a cluster, or the one of a name, sorted by name.

    Brokers that do not answer are shown as dead; Java's show only where their logs end.

    Raises:
        UsageError: there is no such broker.
        TransportError, ReplyError: no name server answered.
    """
    found = await _registered(caller, cluster=cluster, broker=broker)
    return await asyncio.gather(*(_group(caller, name, data) for name, data in found.items()))


async def elect(
    caller: Caller, broker: str, *, to: int | None = None, is_unclean: bool = False
) -> ReplicaGroup:
    """Has another member of a group made its master.

    The master is asked first: it hands over without losing anything. If it does not answer, any
    other member is asked.

    Args:
        caller: asks the brokers.
        broker: the name of the group.
        to: the number of the new master; None for the best that is in sync.
        is_unclean: whether it may miss what was acknowledged, which is lost then.

    Returns:
        The group afterwards.

    Raises:
        UsageError: there is no such broker, or its role is set and not elected.
        ReplyError: the group refuses; the text says why.
        TransportError: no member answered.
    """
    if is_unclean and to is None:
        raise UsageError("an unclean election needs the number of the new master")
    data = (await _registered(caller, broker=broker))[broker]
    answers = await _answers(caller, data)
    states = [each for each in answers if each.state is not None]
    if not any(each.state.elector for each in states if each.state):
        if any(each.is_reachable for each in answers):
            raise UsageError(f"broker {broker} has no elector: its settings say which one leads")
        raise UsageError(f"no broker {broker} answers")
    asked = min(states, key=lambda each: each.state is None or each.state.slave)
    reply = await caller.ask(asked.address, HandOver(to=to, is_unclean=is_unclean))
    # Members that change their roles just now may answer with the view before, or not at all.
    return await _group(caller, broker, data, decided=GroupStateBody.decode(reply.body))


async def _registered(
    caller: Caller, *, cluster: str | None = None, broker: str | None = None
) -> dict[str, BrokerData]:
    info = await caller.cluster_info()
    found = {
        name: data
        for name, data in sorted(info.broker_addr_table.items())
        if cluster in (None, data.cluster) and broker in (None, name)
    }
    if not found and (broker or cluster):
        raise UsageError(f"no {f'broker {broker}' if broker else f'cluster {cluster}'} is known")
    return found


async def _answers(caller: Caller, data: BrokerData) -> list[_Answer]:
    return await asyncio.gather(
        *(_ask(caller, number, address) for number, address in sorted(data.broker_addrs.items()))
    )


async def _ask(caller: Caller, number: int, address: str) -> _Answer:
    try:
        reply = await caller.ask(address, GroupStateOf())
        return _Answer(number, address, True, GroupStateBody.decode(reply.body))
    except RequestNotSupported:
        pass
    except TransportError:
        return _Answer(number, address, False, None)
    except ReplyError:
        return _Answer(number, address, True, None)
    try:
        old = ReplicaStateBody.decode((await caller.ask(address, ReplicaState())).body)
    except (TransportError, ReplyError):
        return _Answer(number, address, True, None)
    mine = old.ha_client_runtime_info
    end = old.master_commit_log_max_offset if old.master or mine is None else mine.max_offset
    state = GroupStateBody(number=number, slave=not old.master, log_end=end, confirmed=-1)
    return _Answer(number, address, True, state)


async def _group(
    caller: Caller, broker: str, data: BrokerData, *, decided: GroupStateBody | None = None
) -> ReplicaGroup:
    """A group as its members show it, or as it was decided, whichever is newer."""
    answers = await _answers(caller, data)
    states = [each.state for each in answers if each.state is not None]
    views = states if decided is None else [*states, decided]
    seen = max(views, key=lambda each: (each.epoch, each.set_epoch), default=GroupStateBody())
    known = {each.number: each for each in seen.members}
    master = next((each for each in answers if each.state and not each.state.slave), None)
    members = [_member(each, seen, known, master) for each in answers]
    numbers = {each.number for each in members}
    members += [
        ReplicaMember(
            each.number, each.address, None, each.alive, each.number in seen.in_sync,
            priority=each.priority,
        )
        for each in seen.members
        if each.number not in numbers
    ]  # fmt: skip
    leader = next((each.number for each in members if each.role == "master"), None)
    has_elector = seen.elector is not None
    return ReplicaGroup(
        data.cluster or "",
        broker,
        seen.elector,
        seen.epoch if has_elector else None,
        (seen.master or None) if has_elector else leader,
        [*seen.in_sync],
        sorted(members, key=lambda each: each.number),
    )


def _member(
    answer: _Answer,
    seen: GroupStateBody,
    known: dict[int, GroupMemberFacts],
    master: _Answer | None,
) -> ReplicaMember:
    """A registered broker, as it shows itself, and as its group's newest view has it."""
    state, has_elector = answer.state, seen.elector is not None
    number = _registered_number(answer, seen) if state is None else state.number
    in_sync = number in seen.in_sync if has_elector else None
    priority = known[number].priority if number in known else None
    if state is None:
        role = "master" if answer.registered == MASTER and not has_elector else None
        return ReplicaMember(
            number, answer.address, role, answer.is_reachable, in_sync, priority=priority
        )
    behind, seconds = _behind(state, None if master is None else master.state)
    return ReplicaMember(
        number, answer.address, "slave" if state.slave else "master", True, in_sync,
        state.epoch if has_elector else None,
        state.log_end,
        None if state.confirmed < 0 else state.confirmed,
        behind,
        seconds,
        priority,
    )  # fmt: skip


def _registered_number(answer: _Answer, seen: GroupStateBody) -> int:
    """The number of a broker that does not show itself."""
    if seen.elector is not None:  # a master is registered as 0, whatever its number
        for each in seen.members:
            if each.address == answer.address:
                return each.number
    return answer.registered


def _behind(state: GroupStateBody, lead: GroupStateBody | None) -> tuple[int | None, float | None]:
    """How far a broker's log is behind the master's: bytes and seconds; None if that is unknown."""
    if lead is None:
        return None, None
    behind = max(0, lead.log_end - state.log_end)
    if not (lead.last_stored_ms and state.last_stored_ms):
        return behind, None
    return behind, max(0, lead.last_stored_ms - state.last_stored_ms) / 1000 if behind else 0.0
