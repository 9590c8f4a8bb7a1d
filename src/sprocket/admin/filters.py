"""Filters in Python at all brokers of a cluster: upload, list, remove."""

from __future__ import annotations

from dataclasses import dataclass

from sprocket.admin.caller import Caller
from sprocket.base.errors import FilterMissing, RequestNotSupported, UsageError
from sprocket.filter.python import PythonFilter, Upload
from sprocket.protocol.bodies import FilterFacts, FilterList
from sprocket.protocol.requests.filter import FiltersOf, RemoveFilter, UploadFilter

#: A removal signs this text in place of a version.
_REMOVAL = "-"


@dataclass(frozen=True, slots=True)
class FilterTarget:
    """The group and topic of a filter, and its name."""

    group: str
    topic: str
    name: str


async def upload(
    caller: Caller,
    target: FilterTarget,
    wanted: PythonFilter,
    *,
    now_ms: int,
    is_again: bool = False,
) -> dict[str, str]:
    """Uploads a filter to all masters; returns its version at each broker.

    Args:
        now_ms: the time in the signature, ms since 1970 UTC.
        is_again: whether to switch it on again if failures have switched it off.

    Raises:
        UsageError: a broker does not support such filters, or the filter has no source.
        SubscriptionInvalid: the source has a mistake; the text has line and column.
        NoPermission: the broker does not accept uploads from this machine.
        BrokersFailed, TransportError, ReplyError: a broker did not answer, or refused.
    """
    if wanted.source is None:
        raise UsageError(f"filter {wanted.name} has no source")
    signature = None
    if wanted.secret is not None:
        asked = Upload(target.group, target.topic, target.name, wanted.version, now_ms)
        signature = asked.signature(wanted.secret)
    header = UploadFilter(
        consumer_group=target.group,
        topic=target.topic,
        class_name=target.name,
        signed_ms=None if signature is None else now_ms,
        signature=signature,
        is_again=is_again,
    )
    source = wanted.source

    async def uploaded(broker: str, address: str) -> str:
        try:
            reply = await caller.ask(address, header, body=source)
        except RequestNotSupported:
            raise UsageError(
                f"broker {broker} does not support filters in Python: its setting filter_workers "
                "(filterServerNums) is 0, or it is not a Sprocket broker"
            ) from None
        return reply.remark or ""

    return await caller.at_each(await caller.masters(), uploaded)


async def listed(caller: Caller, group: str | None = None) -> dict[str, list[FilterFacts]]:
    """Filters by broker: all, or those of a group. Brokers without support are left out.

    Raises:
        BrokersFailed, TransportError, ReplyError: a broker did not answer, or refused.
    """
    replies = await caller.ask_each(
        await caller.masters(), FiltersOf(consumer_group=group), absent=(RequestNotSupported,)
    )
    return {broker: FilterList.decode(reply.body).filters for broker, reply in replies.items()}


async def remove(
    caller: Caller,
    target: FilterTarget,
    *,
    now_ms: int,
    version: str | None = None,
    secret: str | None = None,
) -> list[str]:
    """Removes one version or all of a filter from all masters; returns the brokers that had it.

    Raises:
        FilterMissing: none of them had it.
        NoPermission: a broker does not allow it.
        BrokersFailed, TransportError, ReplyError: a broker did not answer, or refused.
    """
    asked = Upload(target.group, target.topic, target.name, _REMOVAL, now_ms)
    header = RemoveFilter(
        consumer_group=target.group,
        topic=target.topic,
        class_name=target.name,
        version=version,
        signed_ms=None if secret is None else now_ms,
        signature=None if secret is None else asked.signature(secret),
    )
    brokers = list(
        await caller.ask_each(
            await caller.masters(), header, absent=(FilterMissing, RequestNotSupported)
        )
    )
    if not brokers:
        raise FilterMissing(
            f"no broker has filter {target.name} of group {target.group}, topic {target.topic}"
        )
    return brokers
