"""Brokers: which are registered, their state, and their settings while they run."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import NamedTuple

from sprocket.admin.caller import Caller
from sprocket.base.errors import ReplyError, TransportError
from sprocket.protocol.bodies import KvTable
from sprocket.protocol.command import Command
from sprocket.protocol.requests.admin import BrokerConfigOf, BrokerState, UpdateBrokerConfig
from sprocket.protocol.requests.route import ReadNameServerConfig, UpdateNameServerConfig

#: Keys of a broker's figures about quotas. Source: `quotas/refusals.py`.
_QUOTA_KEYS = {"quotaRefused": "refused", "quotaDelayed": "delayed", "quotaOver": "over"}


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


class QuotaCount(NamedTuple):
    """What a broker refused or delayed because of a limit.

    Attributes:
        what: `refused` or `delayed`, of all since the start; `over`, of one name that is over its
            limit now.
        kind, limit, name: whose limit, which one, and of whom; an empty name is all of them.
    """

    broker: str
    what: str
    kind: str
    limit: str
    name: str
    times: int


async def quota_counts(caller: Caller) -> list[QuotaCount]:
    """What all brokers refused and delayed because of quotas, sorted.

    Raises:
        TransportError, ReplyError: no name server answers.
    """
    found = []
    for process in await processes(caller):
        for key, value in process.state.items():
            head, _, rest = key.partition(".")
            if head in _QUOTA_KEYS and value.isdecimal():
                kind, limit, name = (*rest.split(".", 2), "", "")[:3]
                found.append(
                    QuotaCount(process.broker, _QUOTA_KEYS[head], kind, limit, name, int(value))
                )
    return sorted(found)


async def settings(
    caller: Caller, *, cluster: str | None = None, broker: str | None = None
) -> dict[str, dict[str, str]]:
    """The settings in force at all masters, those of a cluster, or one: texts by name, by broker.

    Raises:
        UsageError: there is no such broker.
        BrokersFailed, TransportError, ReplyError: a broker did not answer, or refused.
    """
    masters = await caller.masters(cluster=cluster, broker=broker)
    return _listed(await caller.ask_each(masters, BrokerConfigOf()))


async def nameserver_settings(caller: Caller) -> dict[str, dict[str, str]]:
    """The settings in force at all name servers: texts by name, by address.

    Raises:
        BrokersFailed, TransportError, ReplyError: one did not answer, or refused.
    """
    servers = {address: address for address in caller.nameservers}
    return _listed(await caller.ask_each(servers, ReadNameServerConfig()))


def _listed(replies: Mapping[str, Command]) -> dict[str, dict[str, str]]:
    return {
        name: {
            key: value
            for line in bytes(reply.body).decode("utf-8", "replace").splitlines()
            for key, _, value in [line.partition("=")]
        }
        for name, reply in replies.items()
    }


async def change_settings(
    caller: Caller,
    wanted: Mapping[str, str],
    *,
    cluster: str | None = None,
    broker: str | None = None,
) -> list[str]:
    """Changes settings at all masters, those of a cluster, or one. Each broker takes all or none.

    A Sprocket broker keeps the change until its configuration is changed; Java's brokers write it
    into their file, and ignore names that they do not know.

    Returns:
        Names of the brokers.

    Raises:
        UsageError: there is no such broker.
        BrokersFailed, TransportError, ReplyError: a broker did not answer, or refused.
    """
    masters = await caller.masters(cluster=cluster, broker=broker)
    return list(await caller.ask_each(masters, UpdateBrokerConfig(), body=_lines(wanted)))


async def change_nameserver_settings(caller: Caller, wanted: Mapping[str, str]) -> list[str]:
    """Changes settings of all name servers. Each takes all or none, and keeps the change as a
    broker does if it has a file of key-value settings.

    Returns:
        Addresses of the name servers.

    Raises:
        BrokersFailed, TransportError, ReplyError: one did not answer, or refused.
    """
    servers = {address: address for address in caller.nameservers}
    return list(await caller.ask_each(servers, UpdateNameServerConfig(), body=_lines(wanted)))


def _lines(wanted: Mapping[str, str]) -> bytes:
    """Settings as a request has them."""
    pairs = (f"{_escaped(key)}={_escaped(value)}\n" for key, value in wanted.items())
    return "".join(pairs).encode()


def _escaped(text: str) -> str:
    """A text as it stands in a Java properties file."""
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
