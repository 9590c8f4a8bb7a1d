"""Closed brokers in virtual time, and an operator who is a super user."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from sprocket.admin.caller import Caller
from sprocket.broker.config import BrokerConfig
from sprocket.nameserver.config import NameServerConfig
from sprocket.remoting.pool import Pool
from sprocket.testing.cluster import Cluster
from sprocket.testing.loop import simulate
from sprocket.testing.network import Network
from tests.broker.accounts import CLOSED, ROOT_USER


def operate(
    test: Callable[[Caller, Cluster], Awaitable[None]],
    *,
    brokers: int = 2,
    nameservers: int = 1,
    nameserver: NameServerConfig | None = None,
    **settings: Any,
) -> None:
    """Runs a test as the super user of some brokers."""

    async def main(network: Network) -> None:
        config = BrokerConfig(**{**CLOSED, **settings})
        cluster = Cluster(
            network, 0, brokers=brokers, broker=config, nameservers=nameservers,
            nameserver=nameserver,
        )  # fmt: skip
        await cluster.start()
        async with Pool(signer=ROOT_USER) as pool:
            await test(Caller(pool, cluster.nameserver_addresses), cluster)

    simulate(main)
