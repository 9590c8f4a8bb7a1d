"""Which rows of a broker's tables have changed since when: what its slaves ask for. Pure.

The changes are numbered from 1 on; the number of the newest is the tables' *version*. A slave names
the version that it has and gets the rows that have changed since. A change holds no values: a reply
has the values of now, so a row that changed a hundred times is sent once.

A slave that is new, or was away for long, gets all rows first, page by page (`Listing`). What
changes meanwhile has versions behind that of the listing, so it is sent after it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

#: The tables whose rows are followed.
TOPICS, GROUPS, OFFSETS, LEASES, FILTERS = "topics", "groups", "offsets", "leases", "filters"
#: Pops in order, how groups consume topics, and users with their policies.
ORDERS, MODES, ACCOUNTS = "orders", "modes", "accounts"
TABLES = (TOPICS, GROUPS, OFFSETS, LEASES, FILTERS, ORDERS, MODES, ACCOUNTS)
#: Those that change all the time.
_BUSY = (OFFSETS, ORDERS)
#: The part of a change that concerns a whole row.
WHOLE = -1
#: Changes that are kept; a slave that is further behind gets a listing.
CHANGES_MAX = 100_000


class Change(NamedTuple):
    """A row that has changed.

    Attributes:
        table: one of the constants above.
        name: the row's key.
        part: of a group's offsets, or pops in order, in a topic the number of the queue; or
            `WHOLE`.
    """

    table: str
    name: str
    part: int = WHOLE


class ChangeJournal:
    """The changes of one broker's tables since its start.

    Nothing is recorded until somebody follows: a broker without slaves pays nothing.

    Args:
        new_origin: makes a text that nobody else makes.
        on_definition: is called with the version when a table changes that does not change all the
            time: slaves are told at once.

    Attributes:
        origin: tells the versions of this start of the broker from those of others; empty until
            somebody follows.
        version: the number of the newest change.
    """

    __slots__ = (
        "_before", "_changes", "_changes_max", "_new_origin", "_on_definition", "origin", "version",
    )  # fmt: skip

    def __init__(
        self,
        new_origin: Callable[[], str],
        *,
        on_definition: Callable[[int], None] = lambda version: None,
        changes_max: int = CHANGES_MAX,
    ) -> None:
        self._new_origin = new_origin
        self.origin = ""
        self.version = 0
        self._on_definition = on_definition
        self._changes_max = changes_max
        #: The version before the first change that is kept.
        self._before = 0
        #: Plain tuples of a change's fields, which are cheaper: commits of offsets come here.
        self._changes: list[tuple[str, str, int]] = []

    @property
    def is_followed(self) -> bool:
        """Whether changes are recorded."""
        return bool(self.origin)

    def follow(self) -> None:
        """Records changes from now on."""
        self.origin = self.origin or self._new_origin()

    def record(self, table: str, name: str, part: int = WHOLE) -> None:
        """Records that a row has changed."""
        if not self.origin:
            return
        self._changes.append((table, name, part))
        self.version += 1
        if len(self._changes) > self._changes_max:
            dropped = len(self._changes) // 2
            del self._changes[:dropped]
            self._before += dropped
        if table not in _BUSY:
            self._on_definition(self.version)

    def has(self, origin: str, version: int) -> bool:
        """Whether all changes after a version are known here."""
        is_mine = self.is_followed and origin == self.origin
        return is_mine and self._before <= version <= self.version

    def since(self, version: int, count_max: int) -> Sequence[Change]:
        """The changes after a version that `has`, oldest first, at most so many."""
        first = version - self._before
        return [Change(*each) for each in self._changes[first : first + count_max]]


class Listing:
    """All rows of all tables, in an order that stays.

    Args:
        names: the rows' keys by table, copies of the tables'.
        version: the tables' version when these were taken.
    """

    __slots__ = ("_names", "version")

    def __init__(self, names: Mapping[str, Sequence[str]], version: int) -> None:
        self._names = dict(names)
        self.version = version

    def __len__(self) -> int:
        return sum(map(len, self._names.values()))

    def page(self, at: int, count_max: int) -> list[Change]:
        """At most so many rows from a place in the order on; none at the end."""
        found: list[Change] = []
        for table, names in self._names.items():
            if at < len(names):
                found += [Change(table, name) for name in names[at : at + count_max - len(found)]]
                if len(found) == count_max:
                    break
            at = max(0, at - len(names))
        return found
