"""Brokers: which are registered, and their state."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from sprocket.admin.caller import Caller
from sprocket.base.errors import ReplyError, TransportError
from sprocket.protocol.bodies import KvTable
from sprocket.protocol.requests.admin import BrokerState


class BrokerProcess(NamedTuple):
    """One process of a broker.

    Attributes:
        number: 0 for the master, other numbers for slaves.
        is_reachable: whether it answered.
        state: its figures, by RocketMQ's names; empty if it did not answer.
    """

    cluster: str
    broker: str
    number: int
    address: str
    is_reachable: bool
    state: dict[str, str]

    @property
    def version(self) -> str | None:
        """Its version in words."""
        return self.state.get("brokerVersionDesc")


async def processes(caller: Caller) -> list[BrokerProcess]:
    """All registered broker processes with their state, sorted."""
    info = await caller.cluster_info()
    return await asyncio.gather(
        *(
            _ask(caller, data.cluster or "", broker, number, address)
            for broker, data in sorted(info.broker_addr_table.items())
            for number, address in sorted(data.broker_addrs.items())
        )
    )


async def _ask(
    caller: Caller, cluster: str, broker: str, number: int, address: str
) -> BrokerProcess:
    try:
        reply = await caller.ask(address, BrokerState())
    except TransportError:
        return BrokerProcess(cluster, broker, number, address, False, {})
    except ReplyError:
        return BrokerProcess(cluster, broker, number, address, True, {})
    return BrokerProcess(cluster, broker, number, address, True, KvTable.decode(reply.body).table)
