"""Operations about brokers: which there are, their figures, their replicas, their limits."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from sprocket.admin import brokers, replica_groups
from sprocket.base.errors import UsageError
from sprocket.console.operations.declare import Declarations, OperationEnvironment
from sprocket.console.operations.values import (
    Asked,
    NothingAsked,
    OneBroker,
    OnlyBroker,
    OnlyCluster,
    Page,
    PageAsked,
    fields_of,
    page_of,
)
from sprocket.protocol.codes import OwnRequestCode, RequestCode

declared = Declarations()


class BrokerFacts(msgspec.Struct, frozen=True, kw_only=True):
    """One process of a broker."""

    cluster: str
    broker: str
    number: Annotated[int, Meta(description="0 for the master, other numbers for slaves.")]
    address: str
    is_reachable: bool
    version: str | None = None


class ProcessFigures(msgspec.Struct, frozen=True, kw_only=True):
    """One process of a broker, with its figures by RocketMQ's names."""

    number: int
    address: str
    is_reachable: bool
    figures: dict[str, str]


class BrokerAsked(Asked, frozen=True, kw_only=True):
    """Which broker."""

    broker: OneBroker


class BrokersAsked(Asked, frozen=True, kw_only=True):
    """Which brokers."""

    cluster: OnlyCluster = None
    broker: OnlyBroker = None


class BrokerProcesses(msgspec.Struct, frozen=True, kw_only=True):
    """The processes of a broker."""

    broker: str
    processes: list[ProcessFigures]


class ReplicaGroups(msgspec.Struct, frozen=True, kw_only=True):
    """The brokers of each name: which of them leads, who is in sync, how far the others are."""

    groups: list[dict[str, Any]]


class QuotaCounts(msgspec.Struct, frozen=True, kw_only=True):
    """What brokers refused or delayed because of limits."""

    counts: list[dict[str, Any]]


@declared.reads("brokers.list", "/brokers", codes=[RequestCode.GET_BROKER_RUNTIME_INFO])
async def listed(given: OperationEnvironment, asked: PageAsked) -> Page[BrokerFacts]:
    """Lists the processes of all brokers: names, addresses, versions, and which can be reached."""
    found = [
        BrokerFacts(
            cluster=each.cluster, broker=each.broker, number=each.number, address=each.address,
            is_reachable=each.is_reachable, version=each.version,
        )
        for each in await brokers.processes(given.caller)
    ]  # fmt: skip
    return page_of(found, asked, lambda each: f"{each.broker}:{each.number:05}:{each.address}")


@declared.reads(
    "brokers.describe", "/brokers/{broker}", codes=[RequestCode.GET_BROKER_RUNTIME_INFO]
)
async def described(given: OperationEnvironment, asked: BrokerAsked) -> BrokerProcesses:
    """Shows a broker's figures: rates, disk, queues, transactions, by RocketMQ's names."""
    found = [each for each in await brokers.processes(given.caller) if each.broker == asked.broker]
    if not found:
        raise UsageError(f"no broker {asked.broker} is registered")
    return BrokerProcesses(
        broker=asked.broker,
        processes=[
            ProcessFigures(
                number=each.number, address=each.address, is_reachable=each.is_reachable,
                figures=each.state,
            )
            for each in found
        ],
    )  # fmt: skip


@declared.reads(
    "brokers.replicas",
    "/replicas",
    codes=[OwnRequestCode.GROUP_STATE, RequestCode.GET_BROKER_HA_STATUS],
)
async def replicas(given: OperationEnvironment, asked: BrokersAsked) -> ReplicaGroups:
    """Shows the brokers of each name: master, members in sync, and how far each is behind."""
    found = await replica_groups.replica_groups(
        given.caller, cluster=asked.cluster, broker=asked.broker
    )
    return ReplicaGroups(groups=[fields_of(each) for each in found])


@declared.reads("brokers.quotas", "/quotas", codes=[RequestCode.GET_BROKER_RUNTIME_INFO])
async def quotas(given: OperationEnvironment, asked: NothingAsked) -> QuotaCounts:
    """Shows what brokers refused or delayed because of limits, and who is over one now."""
    found = await brokers.quota_counts(given.caller)
    return QuotaCounts(counts=[fields_of(each) for each in found[:1_000]])
