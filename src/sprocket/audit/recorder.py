"""What makes entries of what was asked of a server, whoever keeps them then."""

from __future__ import annotations

from abc import ABC, abstractmethod

from sprocket.audit.entries import AuditEntry, time_text
from sprocket.base.ports import Clock


class AuditRecorder(ABC):
    """Makes the entries of one server.

    Args:
        server: the server's name in the entries.
    """

    def __init__(self, server: str, clock: Clock) -> None:
        self._server = server
        self._clock = clock

    @abstractmethod
    def put(self, entry: AuditEntry) -> None:
        """Keeps an entry. It neither waits nor fails."""

    def record(
        self,
        *,
        user: str,
        address: str,
        client: str,
        request: str,
        code: int,
        named: dict[str, object],
        result: int,
        remark: str | None,
        times: int = 1,
    ) -> None:
        """Records one request."""
        self.put(
            AuditEntry(
                time_text(self._clock.now_ms()), self._server, user, address, client, request, code,
                named, result, remark, times,
            )
        )  # fmt: skip

    def record_event(self, name: str, named: dict[str, object]) -> None:
        """Records something that the server did by itself."""
        self.put(self.event(name, named))

    def event(self, name: str, named: dict[str, object]) -> AuditEntry:
        """An entry of something that the server did by itself."""
        now = time_text(self._clock.now_ms())
        return AuditEntry(now, self._server, "", "", "", name, 0, named, 0)
