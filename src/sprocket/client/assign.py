"""Assignment strategies: which member of a group reads which queues.

A strategy is a function. Every member computes the assignment by itself, so all members must sort
alike and use one strategy. A group may have Java members too; the results equal theirs. Members are
sorted in Java's text order, queues by topic, broker and number. A member that is not in the list
gets no queues.

Pure. Source: AllocateMessageQueueAveragely, …AveragelyByCircle, …ConsistentHash, …ByMachineRoom,
AllocateMachineRoomNearby of RocketMQ 5.x.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from hashlib import md5

from sprocket.base.errors import ConfigError
from sprocket.message.queue import QueueId

#: Takes this member, all queues of a topic and all members; returns the queues of this member.
Strategy = Callable[[str, Sequence[QueueId], Sequence[str]], list[QueueId]]


def sort_members(members: Iterable[str]) -> list[str]:
    """Returns client ids in Java's order of strings: by UTF-16 units."""
    return sorted(members, key=lambda member: member.encode("utf-16-be", "surrogatepass"))


def average(member: str, queues: Sequence[QueueId], members: Sequence[str]) -> list[QueueId]:
    """Gives each member consecutive queues; the first ones get one more. Java's default."""
    if member not in members:
        return []
    share, more = divmod(len(queues), len(members))
    place = members.index(member)
    start = place * share + min(place, more)
    return list(queues[start : start + share + (place < more)])


def circle(member: str, queues: Sequence[QueueId], members: Sequence[str]) -> list[QueueId]:
    """Deals the queues out one by one, like cards."""
    if member not in members:
        return []
    return list(queues[members.index(member) :: len(members)])


class ConsistentHash:
    """Gives each queue to the next member on a hash ring, so that a new member moves few queues.

    Args:
        points: how many points each member has on the ring; all members need the same number.
    """

    def __init__(self, points: int = 10) -> None:
        self.points = points

    def __call__(
        self, member: str, queues: Sequence[QueueId], members: Sequence[str]
    ) -> list[QueueId]:
        if member not in members:
            return []
        ring = {_place(f"{each}-{n}"): each for each in members for n in range(self.points)}
        places = sorted(ring)

        def owner(queue: QueueId) -> str:
            key = f"MessageQueue [topic={queue.topic}, brokerName={queue.broker}, "
            at = bisect_left(places, _place(f"{key}queueId={queue.number}]"))
            return ring[places[at % len(places)]]

        return [queue for queue in queues if owner(queue) == member]


def _place(key: str) -> int:
    return int.from_bytes(md5(key.encode(), usedforsecurity=False).digest()[:4], "big")


class ByConfig:
    """Gives this member the queues that are configured for it, whatever the other members are.

    Args:
        queues: this member's queues by topic.
    """

    def __init__(self, queues: Mapping[str, Sequence[QueueId]]) -> None:
        self.queues = {topic: list(mine) for topic, mine in queues.items()}

    def __call__(
        self, member: str, queues: Sequence[QueueId], members: Sequence[str]
    ) -> list[QueueId]:
        mine = {queue for each in self.queues.values() for queue in each}
        return [queue for queue in queues if queue in mine]


class MachineRooms:
    """Shares the queues of certain machine rooms evenly; nobody reads the others.

    Args:
        rooms: the rooms whose queues are read. A broker's room is the part of its name before `@`.
    """

    def __init__(self, rooms: Collection[str]) -> None:
        self.rooms = frozenset(rooms)

    def __call__(
        self, member: str, queues: Sequence[QueueId], members: Sequence[str]
    ) -> list[QueueId]:
        if member not in members:
            return []
        usable = [queue for queue in queues if _is_in(self.rooms, queue.broker)]
        share, more = divmod(len(usable), len(members))
        place = members.index(member)
        mine = usable[place * share : (place + 1) * share]
        if place < more:
            mine.append(usable[place + share * len(members)])
        return mine


def _is_in(rooms: frozenset[str], broker: str) -> bool:
    room, separator, _ = broker.partition("@")
    return bool(separator) and room in rooms


class Nearest:
    """Gives queues to members in their own machine room; if the room has none, to all members.

    Args:
        inside: the strategy that shares queues among the members of a room.
        room_of_broker: returns the room for a broker name.
        room_of_member: returns the room for a client id.
    """

    def __init__(
        self,
        inside: Strategy = average,
        *,
        room_of_broker: Callable[[str], str],
        room_of_member: Callable[[str], str],
    ) -> None:
        self.inside = inside
        self.room_of_broker = room_of_broker
        self.room_of_member = room_of_member

    def __call__(
        self, member: str, queues: Sequence[QueueId], members: Sequence[str]
    ) -> list[QueueId]:
        if member not in members:
            return []
        by_room: dict[str, list[QueueId]] = {}
        for queue in queues:
            by_room.setdefault(self.room_of_broker(queue.broker), []).append(queue)
        neighbours: dict[str, list[str]] = {}
        for each in members:
            neighbours.setdefault(self.room_of_member(each), []).append(each)
        home = self.room_of_member(member)
        mine = self.inside(member, by_room.get(home, []), neighbours[home])
        for room in sorted(by_room):
            if room not in neighbours:
                mine += self.inside(member, by_room[room], members)
        return mine


#: Strategies that need no arguments, by their names in RocketMQ.
STRATEGIES: dict[str, Strategy] = {
    "AVG": average,
    "AVG_BY_CIRCLE": circle,
    "CONSISTENT_HASH": ConsistentHash(),
}


def strategy_of(given: Strategy | str) -> Strategy:
    """Returns the strategy of that name; a function is returned unchanged.

    Raises:
        ConfigError: no strategy has this name.
    """
    if not isinstance(given, str):
        return given
    if given.upper() not in STRATEGIES:
        raise ConfigError(f"a strategy is {', '.join(STRATEGIES)}, or a function; not {given!r}")
    return STRATEGIES[given.upper()]
