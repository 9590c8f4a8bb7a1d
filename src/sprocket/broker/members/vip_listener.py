"""The second port of a master, at which RocketMQ's slaves ask for topics and for timers.

They ask at the port that is two below the master's, the VIP channel, whatever it says of itself.
No other requests need it, so it is opened when a slave is connected that copies the log and does
not ask for changes as Sprocket's slaves do.
Source: MixAll.brokerVIPChannel, BrokerOuterAPI.getAllTopicConfig and getTimerCheckPoint of RocketMQ
4.9 and 5.x.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from sprocket.base.errors import UsageError
from sprocket.remoting.endpoints import BatchEndpoint
from sprocket.remoting.ip_counts import IpCounts
from sprocket.remoting.limits import ConnectionLimits
from sprocket.remoting.server import Server

logger = logging.getLogger(__name__)

#: The distance of the port from the broker's own.
_BELOW = 2
#: Pause between two checks for such slaves, s: ours have asked before the second one.
_CHECK_SECONDS = 5.0


class VipListener:
    """Listens at the second port once that is needed.

    Args:
        endpoint: handles the requests, as at the broker's own port.
        host, port: the broker's own.
        strangers: how many slaves copy the log and follow in RocketMQ's way, or not at all.
        ips: counts the connections by IP address.
    """

    def __init__(
        self,
        endpoint: BatchEndpoint,
        *,
        host: str,
        port: int,
        limits: ConnectionLimits,
        strangers: Callable[[], int],
        ips: IpCounts,
    ) -> None:
        self._port = port - _BELOW
        self._strangers = strangers
        self._server = Server(endpoint, host=host, port=self._port, limits=limits, ips=ips)

    async def run(self) -> None:
        """Listens from when it is needed until cancelled."""
        seen = 0
        while seen < 2:
            await asyncio.sleep(_CHECK_SECONDS)
            seen = seen + 1 if self._strangers() > 0 else 0
        if self._port <= 0:
            return
        try:
            async with self._server:
                logger.info("slaves of RocketMQ get topics at port %d", self._port)
                await _for_ever()
        except UsageError as error:
            logger.warning("slaves of RocketMQ cannot copy topics: %s", error)


async def _for_ever() -> None:
    await asyncio.get_running_loop().create_future()
