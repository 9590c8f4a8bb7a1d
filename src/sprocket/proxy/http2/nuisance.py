"""Bounds what a client may do that brings no call further. Pure.

Each frame of a flood is harmless: a PING, a stream that is reset at once, an empty CONTINUATION.
Honest clients send such frames too, but beside calls that are answered.
"""

from __future__ import annotations

from sprocket.proxy.http2.faults import ConnectionFault
from sprocket.proxy.http2.frames import ENHANCE_YOUR_CALM
from sprocket.proxy.http2.outgoing import Outgoing

#: What frames that bring nothing may cost until their cost is set back, which happens every minute
#: or two. Every frame of a reply makes up for as much as a reset.
COST_MAX = 10_000
#: The cost of a stream that the client resets, or opens in a way that is refused.
RESET_COST = 5


class Nuisance:
    """The frames of one client that brought nothing.

    Attributes:
        cost: what they cost together, since it was set back.
    """

    def __init__(self) -> None:
        self.cost = 0

    def count(self, cost: int, out: Outgoing) -> None:
        """Counts such a frame.

        Raises:
            ConnectionFault: they are too many.
        """
        self.cost += cost
        if self.cost > COST_MAX:
            self.cost = max(0, self.cost - out.reply_frames * RESET_COST)
            out.reply_frames = 0
            if self.cost > COST_MAX:
                raise ConnectionFault(ENHANCE_YOUR_CALM, "too many frames that bring nothing")
