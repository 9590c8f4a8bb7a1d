"""Reports what a session cannot reach or is refused: at the begin, then rarely, and at the end."""

from __future__ import annotations

import logging
from collections.abc import Callable

from sprocket.base.errors import ConnectFailed, ReplyError, SprocketError
from sprocket.base.troubles import TROUBLES_MAX, Troubles
from sprocket.clientcore.attempts import is_shut_out
from sprocket.protocol.command import Command

logger = logging.getLogger(__name__)

#: How many times as long as others a client waits that access control refuses.
_PATIENCE = 10


class Reachability:
    """What one session knows of servers that it cannot reach, and of what they refuse.

    Args:
        clock: the loop's time, in seconds.

    Attributes:
        troubles: what else goes wrong.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self.troubles = Troubles(clock, logger)
        #: What access control refuses now.
        self._shut_out: dict[str, SprocketError] = {}

    @property
    def refusal(self) -> SprocketError | None:
        """Why access control refuses something, if it does so now."""
        return next(iter(self._shut_out.values()), None)

    def pause(self, seconds: float) -> float:
        """The pause before another attempt: longer where access control refuses something, since
        only people can help."""
        return seconds * _PATIENCE if self._shut_out else seconds

    def failed(self, server: str, error: Exception, *, level: int = logging.WARNING) -> None:
        """An attempt to reach a server failed.

        Args:
            server: what is reported: "broker 10.0.0.1:10911".
            level: of the report.
        """
        self.troubles.failed(server, f"no answer from {server}", error, level=level)

    def answered(self, server: str) -> None:
        """A server answered."""
        if self.troubles.is_any:
            self.troubles.ended(server, f"answers come again from {server}")

    def registered(self, client_id: str, address: str, reply: Command) -> None:
        """A broker answered a heartbeat; Sprocket's brokers may warn in the remark.

        Raises:
            ConnectFailed: it refuses the heartbeat.
        """
        who, what = f"client {client_id}", f"register at broker {address}"
        if reply.code:
            refusal = ReplyError.of(reply.code, reply.remark or "")
            self.refused(who, what, refusal)
            raise ConnectFailed(f"{address} refused a heartbeat: {refusal}")
        self.succeeded(who, what)
        if reply.remark:
            name, remark = f"warning of {address}", reply.remark
            is_new = self.troubles.reported(name) not in (None, remark)
            self.troubles.failed(name, remark, f"so says broker {address}", is_new=is_new)
        elif self.troubles.is_any:
            self.troubles.ended(f"warning of {address}", f"broker {address} warns no more")

    def refused(self, who: str, what: str, error: SprocketError | str) -> None:
        """Something does not succeed: "group g", "read topic t"."""
        if isinstance(error, SprocketError) and is_shut_out(error):
            if len(self._shut_out) < TROUBLES_MAX:
                self._shut_out[f"{who} {what}"] = error
        else:
            self._shut_out.pop(f"{who} {what}", None)
        self.troubles.failed(f"{who} {what}", f"{who} cannot {what}", error)

    def succeeded(self, who: str, what: str) -> None:
        """It succeeds."""
        self._shut_out.pop(f"{who} {what}", None)
        if self.troubles.is_any:
            self.troubles.ended(f"{who} {what}", f"{who} can {what} again")
