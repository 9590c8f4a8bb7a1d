"""The brokers of a simulated history of pop consumption: one, or a group that elects its master."""

from __future__ import annotations

import asyncio

from sprocket.broker.config import BrokerConfig
from sprocket.election.elector import Elector
from sprocket.election.opening import ElectorRequest, key_elector
from sprocket.store.config import StoreConfig
from sprocket.testing.cluster import GROUP_NAME, Cluster, Machine
from sprocket.testing.entropy import SeededEntropy
from sprocket.testing.group_checks import GroupChecks
from sprocket.testing.invariants import Violation
from sprocket.testing.leased_keys import KeyServers
from sprocket.testing.network import Network

_LEASE_MS = 3_000
#: Most seconds of virtual time until a group is whole.
_WHOLE_SECONDS_MAX = 120.0


class PoppedBrokers:
    """The brokers.

    Args:
        members: how many; more than one are a group, in which the master and one other have all
            that is acknowledged.
    """

    def __init__(
        self,
        network: Network,
        seed: str,
        *,
        members: int,
        store: StoreConfig,
        sync_seconds: tuple[float, float],
    ) -> None:
        self._members = members
        self._keys = KeyServers(network) if members > 1 else None
        is_group = self._keys is not None
        config = BrokerConfig(
            role="SYNC_MASTER", copies=2, copies_min=2, lease_ms=_LEASE_MS,
            replication_start="first",
        )  # fmt: skip
        self.cluster = Cluster(
            network,
            seed,
            brokers=members,
            broker=config if is_group else None,
            store=store,
            sync_seconds=sync_seconds,
            elect=self._elector if is_group else None,
        )
        is_flushing = store.flush == "SYNC_FLUSH"
        self._checks = GroupChecks(self.cluster, copies=2, is_flushing=is_flushing)
        self._last = self.cluster.brokers[0]

    def _elector(self, machine: Machine) -> Elector:
        assert self._keys is not None, "only a group has an elector"
        entropy = SeededEntropy(f"elector {machine.name} {machine.starts}")
        request = ElectorRequest(
            "", "c", GROUP_NAME, machine.disk, "/data", entropy, machine.clock,
            lease_ms=_LEASE_MS,
        )  # fmt: skip
        return key_elector(self._keys.client(), request)

    async def start(self) -> None:
        """Starts them; returns when there is a master."""
        if self._keys is not None:
            await self._keys.start()
        await self.cluster.start()
        await self.until_whole()

    @property
    def name(self) -> str:
        """The broker's name in handles."""
        return "broker-0" if self._keys is None else GROUP_NAME

    def master(self) -> Machine:
        """The broker that leads, or did last."""
        if self._keys is not None:
            leading = list(self._checks.leading())
            if leading:
                self._last = max(leading, key=lambda each: each[0])[1]
        return self._last

    async def until_whole(self) -> None:
        """Returns when one member leads, and all are in sync.

        Raises:
            Violation: that takes too long.
        """
        loop = asyncio.get_running_loop()
        give_up = loop.time() + _WHOLE_SECONDS_MAX
        while self._keys is not None and not self._is_whole():
            if loop.time() > give_up:
                raise Violation("the group is not whole after all came to rest")
            await asyncio.sleep(0.5)

    def _is_whole(self) -> bool:
        leading = list(self._checks.leading())
        if len(leading) != 1:
            return False
        return len(leading[0][1].server._elector.view.in_sync) == self._members
