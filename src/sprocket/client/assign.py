"""Which member of a group reads which queues: the strategies, as plain functions.

Every member computes the same answer by itself, so all must sort alike and use one strategy; a
group may hold Java members too, whose results these are. Members sort by Java's text order,
queues by topic, broker and number. A member that is not in the list gets nothing.

Pure. Source: AllocateMessageQueueAveragely, …AveragelyByCircle, …ConsistentHash, …ByMachineRoom,
AllocateMachineRoomNearby of RocketMQ 5.x.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from hashlib import md5

from sprocket.base.errors import ConfigError
from sprocket.message.queue import QueueId

#: (this member, all queues of a topic, all members) to the queues of this member.
Strategy = Callable[[str, Sequence[QueueId], Sequence[str]], list[QueueId]]


def sort_members(members: Iterable[str]) -> list[str]:
    """Client ids in the order that Java gives them: by UTF-16 units."""
    return sorted(members, key=lambda member: member.encode("utf-16-be", "surrogatepass"))


def average(member: str, queues: Sequence[QueueId], members: Sequence[str]) -> list[QueueId]:
    """Neighbouring queues for each member, the first members having one more. Java's default."""
    if member not in members:
        return []
    share, more = divmod(len(queues), len(members))
    place = members.index(member)
    start = place * share + min(place, more)
    return list(queues[start : start + share + (place < more)])


def circle(member: str, queues: Sequence[QueueId], members: Sequence[str]) -> list[QueueId]:
    """Queues dealt out one by one, as cards are."""
    if member not in members:
        return []
    return list(queues[members.index(member) :: len(members)])


class ConsistentHash:
    """Queues go to the next member on a ring, so that a change moves few of them.

    Args:
        points: places of each member on the ring; all members need the same number.
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
    """Each member gets the queues that were set for it by hand, whoever else is there.

    Args:
        queues: by topic, this member's queues.
    """

    def __init__(self, queues: Mapping[str, Sequence[QueueId]]) -> None:
        self.queues = {topic: list(mine) for topic, mine in queues.items()}

    def __call__(
        self, member: str, queues: Sequence[QueueId], members: Sequence[str]
    ) -> list[QueueId]:
        mine = {queue for each in self.queues.values() for queue in each}
        return [queue for queue in queues if queue in mine]


class MachineRooms:
    """Only queues of certain machine rooms, shared evenly; others are read by nobody.

    Args:
        rooms: the rooms whose queues count. A broker's room stands before the `@` of its name.
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
    """Queues go to members of their own machine room; where there is none, to all.

    Args:
        inside: how queues are shared among the members of a room.
        room_of_broker, room_of_member: find the room by broker name and by client id.
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


#: Those that need to be told nothing, by RocketMQ's names for them.
STRATEGIES: dict[str, Strategy] = {
    "AVG": average,
    "AVG_BY_CIRCLE": circle,
    "CONSISTENT_HASH": ConsistentHash(),
}


def strategy_of(given: Strategy | str) -> Strategy:
    """A strategy by its name, or as it is.

    Raises:
        ConfigError: there is none of that name.
    """
    if not isinstance(given, str):
        return given
    if given.upper() not in STRATEGIES:
        raise ConfigError(f"a strategy is {', '.join(STRATEGIES)}, or a function; not {given!r}")
    return STRATEGIES[given.upper()]
