"""Requests of operators about the brokers of one name. RocketMQ has nothing like them.

Its own requests for this go to its controller, which operators must then reach; these go to any
broker of the group, which asks its elector, whatever that is.
"""

from __future__ import annotations

from typing import ClassVar

from sprocket.protocol.codes import OwnRequestCode
from sprocket.protocol.command import Header, Long


class GroupStateOf(Header, kw_only=True):
    """Asks a broker for its own state and its group's; reply body: `GroupStateBody`."""

    code: ClassVar[int] = OwnRequestCode.GROUP_STATE


class HandOver(Header, kw_only=True):
    """Asks a broker to have another member of its group made the master; reply body:
    `GroupStateBody`.

    Attributes:
        to: the number of the new master; 0: whichever is best.
        is_unclean: whether it may miss what was acknowledged.
    """

    code: ClassVar[int] = OwnRequestCode.HAND_OVER

    to: Long = 0
    is_unclean: bool = False
