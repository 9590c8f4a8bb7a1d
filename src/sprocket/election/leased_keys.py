"""The port to a strongly consistent store of keys with leases, as etcd is one.

Its values are small texts. Every change of any key has a *revision*, a number that rises; a key's
revision is that of its last change. A *transaction* compares revisions of keys and then makes all
its changes, or none. Keys that are bound to a *lease* are deleted when the lease ends.

Answers are linearizable: whoever asks after a change was answered sees it, at every server.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import NamedTuple, Protocol

from sprocket.base.errors import SprocketError


class LeaseGone(SprocketError):
    """A key was to be bound to a lease that has ended."""


class KeyValue(NamedTuple):
    """A key with its value; `revision` is that of its last change."""

    key: str
    value: str
    revision: int


class Picture(NamedTuple):
    """All keys under a prefix at one moment; `revision` is the store's at that moment."""

    revision: int
    keys: Mapping[str, KeyValue]


class Compare(NamedTuple):
    """Demands that a key has this revision; 0: that there is no such key."""

    key: str
    revision: int


class Put(NamedTuple):
    """Writes a key. With a lease other than 0 it is deleted when the lease ends."""

    key: str
    value: str
    lease: int = 0


class Delete(NamedTuple):
    """Deletes a key, if it is there."""

    key: str


class Transacted(NamedTuple):
    """Whether a transaction was made, and the store's revision after it."""

    is_done: bool
    revision: int


class GrantedLease(NamedTuple):
    """A lease, and for how many seconds it lasts: perhaps more than were asked for."""

    id: int
    seconds: float


class LeasedKeys(Protocol):
    """A client of such a store.

    Every call but `watch` ends within a bounded time and raises `ElectorUnavailable` if no server
    answered: whether a change was made is unknown then, and it may still be made a little later.
    """

    async def get(self, prefix: str) -> Picture:
        """All keys that begin with a prefix."""
        ...

    async def transact(
        self, compares: Sequence[Compare], changes: Sequence[Put | Delete]
    ) -> Transacted:
        """Makes all changes if all comparisons hold, else none.

        A server that does not answer may make it nevertheless, and the next one then finds that it
        does not hold any more. So whoever learns that it was not made reads what is there now.

        Raises:
            LeaseGone: a key is bound to a lease that has ended.
        """
        ...

    async def grant(self, seconds: float) -> GrantedLease:
        """Makes a lease that lasts for at least so long if it is not kept alive."""
        ...

    async def keep_alive(self, lease: int) -> float:
        """Lets a lease begin anew.

        Returns:
            For how many seconds it lasts from the moment of the request on; 0: it has ended.
        """
        ...

    async def revoke(self, lease: int) -> None:
        """Ends a lease, and deletes its keys."""
        ...

    def watch(self, prefix: str, revision: int) -> AsyncIterator[int]:
        """The revisions of changes under a prefix, from a revision on, as they are made.

        It ends or raises `ElectorUnavailable` when the connection is lost, or when the store has
        forgotten that revision; then whoever watches reads the keys and begins again.
        """
        ...

    async def close(self) -> None:
        """Closes connections. A later call opens them again. Raises nothing."""
        ...
