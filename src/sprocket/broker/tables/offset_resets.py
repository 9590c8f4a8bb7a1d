"""What connections know of a reset of a group's offset. Pure; `offsets` describes the rules."""

from __future__ import annotations

from dataclasses import dataclass, field

#: How long a reset lasts after the first acknowledgement, ms: no pull is held longer.
RESET_MS = 300_000
#: Within this time a consumer that reconnected has sent a heartbeat or a pull, ms.
APART_MS = 60_000
#: Connections remembered for a reset; the oldest beyond that get the new offset again.
_CONNECTIONS_MAX = 1_000


@dataclass(slots=True)
class ResetNotice:
    """What one connection knows of a reset.

    Attributes:
        offset: the new offset that a pull or a query of it got; -1 if none did.
        times: how many of its pulls got the new offset.
        has_heard: whether it has acknowledged the reset.
        first_ms: when it first committed without being a member of the group; None if never.
    """

    offset: int = -1
    times: int = 0
    has_heard: bool = False
    first_ms: int | None = None


@dataclass(slots=True)
class Reset:
    """A reset of one queue for one group.

    Attributes:
        acknowledged_ms: when the first connection acknowledged it; None if none has.
        notices: by address, what each connection knows of it.
    """

    acknowledged_ms: int | None = None
    notices: dict[str, ResetNotice] = field(default_factory=dict)

    def was_sent(self, address: str) -> bool:
        return address in self.notices and self.notices[address].has_heard

    def notice_of(self, address: str) -> ResetNotice:
        if address not in self.notices:
            if len(self.notices) >= _CONNECTIONS_MAX:
                del self.notices[next(iter(self.notices))]
            self.notices[address] = ResetNotice()
        return self.notices[address]

    def is_apart(self, address: str, now_ms: int) -> bool:
        """Whether a connection that commits, and is no member, belongs to no consumer."""
        notice = self.notice_of(address)
        if notice.first_ms is None:
            notice.first_ms = now_ms
        has_asked = notice.offset >= 0
        return not notice.times and (has_asked or now_ms - notice.first_ms >= APART_MS)

    def is_over(self, now_ms: int) -> bool:
        if self.acknowledged_ms is None:
            return False
        return now_ms - self.acknowledged_ms >= RESET_MS
