"""The slaves that copy a broker's tables, and which version of them each has.

A slave asks for what has changed since the version that it has. So its question says what it has
applied: a new topic is known to every copy once all slaves that follow have asked for more.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from sprocket.base.deadline import Deadline, loop_ms
from sprocket.base.watermark import Watermark
from sprocket.broker.dispatch import Endpoints
from sprocket.broker.tables.changes import ChangeJournal, Listing
from sprocket.protocol.command import Command
from sprocket.remoting.endpoints import Endpoint, EventualResponse, Response
from sprocket.remoting.transport import Peer

#: A slave that has asked nothing for so long does not follow any more, ms. Questions are held for a
#: fraction of it.
SILENT_MS = 2_000
#: The most slaves that are remembered.
_FOLLOWERS_MAX = 64


class Follower:
    """One slave.

    Attributes:
        has: the version that it has.
        heard_ms: when it asked last, by the loop's time.
        counts: whether it is known to be a slave of this broker.
        listing: the rows that it is being sent; None if it needs none.
    """

    __slots__ = ("counts", "has", "heard_ms", "listing")

    def __init__(self) -> None:
        self.has = Watermark()
        self.heard_ms = 0
        self.counts = False
        self.listing: Listing | None = None

    def list_rows(self, listing: Listing) -> None:
        """Begins to send it all rows: what it has does not count any more."""
        self.listing, self.has = listing, Watermark()

    def has_version(self, version: int) -> None:
        """Records which version it has: it gets changes only."""
        self.listing = None
        self.has.rise(version)

    @property
    def follows(self) -> bool:
        """Whether it gets all changes as they come."""
        return self.counts and self.listing is None and loop_ms() - self.heard_ms < SILENT_MS


class Followers:
    """The slaves of one broker.

    Args:
        new_origin: see `ChangeJournal`.
        is_known: whether a host is known to have a slave of this broker; others get the tables too,
            but nobody waits for them.
        timeout_ms: how long a change waits for them at most; 0 if it need not wait.

    Attributes:
        journal: the changes of the tables.
        definitions: the version of the newest change of a table other than offsets.
    """

    def __init__(
        self,
        new_origin: Callable[[], str],
        *,
        is_known: Callable[[str], bool],
        timeout_ms: Callable[[], int],
    ) -> None:
        self._is_known = is_known
        self._timeout_ms = timeout_ms
        self._known: dict[str, Follower] = {}
        self.definitions = Watermark()
        self.journal = ChangeJournal(new_origin, on_definition=self.definitions.rise)

    def heard(self, peer: Peer, broker_id: int) -> Follower:
        """The slave that asks now."""
        host = peer.address.rpartition(":")[0]
        name = f"{host} {broker_id}"
        follower = self._known.pop(name, None) or Follower()
        self._known[name] = follower
        follower.heard_ms, follower.counts = loop_ms(), self._is_known(host)
        while len(self._known) > _FOLLOWERS_MAX:
            del self._known[next(iter(self._known))]
        return follower

    @property
    def count(self) -> int:
        """How many slaves ask for changes now."""
        now_ms = loop_ms()
        return sum(now_ms - each.heard_ms < SILENT_MS for each in self._known.values())

    async def have_all(self) -> bool:
        """Returns when all slaves that follow have all changes so far, or the time is over.

        Returns:
            Whether they have.
        """
        version, deadline = self.journal.version, Deadline.after_ms(self._timeout_ms())
        for each in list(self._known.values()):
            if each.follows and not await each.has.reach(version, deadline):
                return False
        return True

    def once_copied(self, endpoints: Endpoints) -> Endpoints:
        """The same endpoints, whose replies wait until the slaves have what they changed."""

        def waiting(endpoint: Endpoint) -> Endpoint:
            def answered(command: Command, peer: Peer) -> EventualResponse:
                before = self.definitions.value
                outcome = endpoint(command, peer)
                if self.journal.is_followed and (
                    isinstance(outcome, Awaitable) or self.definitions.value > before
                ):
                    return self._after(outcome, before)
                return outcome

            return answered

        return {code: waiting(endpoint) for code, endpoint in endpoints.items()}

    async def _after(self, outcome: EventualResponse, before: int) -> Response:
        response = await outcome if isinstance(outcome, Awaitable) else outcome
        if self.definitions.value > before:
            await self.have_all()
        return response
