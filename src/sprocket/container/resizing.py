"""Another number of brokers in a folder: what it means, in words, before it is done. Pure.

More brokers are empty at first. Fewer come in two steps: those with the highest numbers take no
more messages, and are removed once consumers have the rest. Nothing is ever deleted: the folder of
a broker stays, and a later one of its number has what is in it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from msgspec.structs import replace

from sprocket.base.errors import UsageError
from sprocket.container.remembered import ROOT, BrokerEntry, ContainerState, brokers


class Resizing(NamedTuple):
    """A change of the number.

    Attributes:
        lines: what it does, one sentence for each broker.
        added: brokers that get a folder.
    """

    after: ContainerState
    lines: list[str]
    added: tuple[BrokerEntry, ...] = ()


def resized(
    state: ContainerState | None,
    count: int,
    *,
    name: str,
    is_there: Callable[[str], bool] = lambda folder: False,
    may_leave_messages: bool = False,
) -> Resizing:
    """Has a folder have so many brokers.

    Args:
        state: the brokers that it has; None if it has a single one, or none.
        name: that of a single broker, and what new brokers' names begin with.
        is_there: whether a folder in it exists.
        may_leave_messages: whether brokers are removed although messages remain in them.

    Raises:
        UsageError: there is nothing to change, or messages remain.
    """
    lines: list[str] = []
    if state is None:
        if count == 1:
            raise UsageError("it has a single broker already: nothing is to change")
        state = ContainerState(brokers=(BrokerEntry(number=0, name=name, folder=ROOT),))
        lines.append(f"{name} becomes broker 0: it keeps its name, its folder and its messages")
    if count > state.count:
        return _grown(state, count, name, lines, is_there)
    if count < state.count:
        return _shrunk(state, count, lines)
    return _finished(state, lines, may_leave_messages=may_leave_messages)


def _grown(
    state: ContainerState,
    count: int,
    name: str,
    lines: list[str],
    is_there: Callable[[str], bool],
) -> Resizing:
    kept: list[BrokerEntry] = []
    missing = count - state.count
    for entry in state.brokers:
        if entry.leaves and missing:
            missing -= 1
            entry = replace(entry, leaves=False, drained=False)
            lines.append(f"{entry.name} takes messages again")
        kept.append(entry)
    added: list[BrokerEntry] = []
    number = 0
    while len(added) < missing:
        if all(each.number != number for each in kept):
            entry = BrokerEntry(number=number, name=f"{name}-{number}", folder=str(number))
            has = f"with what {entry.folder} has" if is_there(entry.folder) else "empty"
            lines.append(f"{entry.name} is added, {has}; it gets the topics, groups and users")
            added.append(entry)
        number += 1
    lines.append("Keys of messages in order move, but for topics with an order configuration")
    whole = tuple(sorted([*kept, *added], key=lambda each: each.number))
    return Resizing(replace(state, brokers=whole), lines, tuple(added))


def _shrunk(state: ContainerState, count: int, lines: list[str]) -> Resizing:
    serving = [each for each in state.brokers if not each.leaves]
    leaving = {each.number for each in serving[count:]}
    for each in serving[count:]:
        lines.append(
            f"{each.name} takes no more messages from the next start on; consumers read what it has"
        )
    lines.append(
        "Its log says when nothing is left; the same command removes it then"
        if len(leaving) == 1
        else "Their log says when nothing is left; the same command removes them then"
    )
    after = tuple(
        replace(each, leaves=True, drained=False) if each.number in leaving else each
        for each in state.brokers
    )
    return Resizing(replace(state, brokers=after), lines)


def _finished(state: ContainerState, lines: list[str], *, may_leave_messages: bool) -> Resizing:
    leaving = [each for each in state.brokers if each.leaves]
    if not leaving:
        raise UsageError(f"it has {brokers(state.count)} already: nothing is to change")
    full = [each.name for each in leaving if not each.drained]
    if full and not may_leave_messages:
        raise UsageError(
            f"messages remain in {', '.join(full)}: start the container until its log says that "
            "nothing is left; --force removes them all the same"
        )
    for each in leaving:
        lines.append(f"{each.name} is removed; its folder {each.folder} stays")
    return Resizing(
        replace(state, brokers=tuple(each for each in state.brokers if not each.leaves)), lines
    )
