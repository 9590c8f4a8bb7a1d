"""Operations about settings of brokers that run, filters in Python, and the audit log."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from sprocket.admin import brokers, filters
from sprocket.admin.filters import FilterTarget
from sprocket.audit.entries import AuditEntry, time_text
from sprocket.audit.reading import concerns, entries_in
from sprocket.base.config import SECRET_MASK, settings_of
from sprocket.base.errors import UsageError
from sprocket.broker.config import BrokerConfig
from sprocket.console.operations.declare import Declarations, OperationEnvironment
from sprocket.console.operations.values import (
    Asked,
    ChangeAsked,
    ChangeLine,
    ChangeReport,
    GroupName,
    NothingAsked,
    OnlyBroker,
    OnlyCluster,
    Page,
    PageAsked,
    Since,
    TopicName,
    Until,
    ms_of,
    page_of,
    time_of,
)
from sprocket.protocol.codes import OwnRequestCode, RequestCode
from sprocket.store.config import StoreConfig

declared = Declarations()

#: Names of settings of brokers of any make whose values are nobody's business.
_SECRET = re.compile(
    "password|secret|credential|token|access_?key|authenticationUser|exporterHeader|private_?key",
    re.IGNORECASE,
)
_OURS = frozenset(
    name
    for kind in (BrokerConfig, StoreConfig)
    for each in settings_of(kind).values()
    if each.about.is_secret
    for name in (*each.rocketmq_names, each.key)
)


class SettingsAsked(PageAsked, frozen=True, kw_only=True):
    """The settings of which brokers."""

    cluster: OnlyCluster = None
    broker: OnlyBroker = None


class SettingFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A setting in force at a broker; what is secret is masked."""

    broker: str
    setting: str
    value: str


class SettingDifference(msgspec.Struct, frozen=True, kw_only=True):
    """A setting that is not the same at all brokers; null where a broker does not have it."""

    setting: str
    values: dict[str, str | None]


class SettingDifferences(msgspec.Struct, frozen=True, kw_only=True):
    """The settings in which brokers differ."""

    brokers: list[str]
    differences: list[SettingDifference]


class SettingsWanted(ChangeAsked, frozen=True, kw_only=True):
    """Settings by RocketMQ's names, and the brokers that get them."""

    settings: Annotated[
        dict[str, str], Meta(min_length=1, max_length=100, description="Values by name.")
    ]
    cluster: OnlyCluster = None
    broker: OnlyBroker = None


class FiltersAsked(Asked, frozen=True, kw_only=True):
    """The filters of which group; none for all."""

    group: GroupName | None = None


class FilterVersion(msgspec.Struct, frozen=True, kw_only=True):
    """One version of a filter in Python at a broker."""

    broker: str
    group: str
    topic: str
    name: str
    version: str
    is_newest: bool
    is_running: bool
    judged: int
    wanted: int
    off: Annotated[str, Meta(description="Why it is switched off; empty if it is on.")]
    uploaded_at: datetime | None


class FilterVersions(msgspec.Struct, frozen=True, kw_only=True):
    """Filters in Python."""

    filters: list[FilterVersion]


class FilterRemoved(ChangeAsked, frozen=True, kw_only=True):
    """Which filter goes."""

    group: GroupName
    topic: TopicName
    name: Annotated[str, Meta(min_length=1, max_length=255)]
    version: Annotated[
        Annotated[str, Meta(max_length=64)] | None,
        Meta(description="Only this version; none for all."),
    ] = None


class AuditAsked(Asked, frozen=True, kw_only=True):
    """Which entries of the audit log."""

    since: Since = None
    until: Until = None
    user: Annotated[
        Annotated[str, Meta(max_length=255)] | None, Meta(description="Only changes by this user.")
    ] = None
    name: Annotated[
        Annotated[str, Meta(max_length=255)] | None,
        Meta(description="Only what names this topic, group or user."),
    ] = None
    failed: Annotated[bool, Meta(description="Only what was refused or failed.")] = False
    limit: Annotated[int, Meta(ge=1, le=1_000, description="The newest so many entries.")] = 100


class AuditEntries(msgspec.Struct, frozen=True, kw_only=True):
    """Entries of the audit log, the oldest first."""

    entries: list[dict[str, Any]]


@declared.reads("settings.list", "/settings", codes=[RequestCode.GET_BROKER_CONFIG])
async def listed(given: OperationEnvironment, asked: SettingsAsked) -> Page[SettingFacts]:
    """Lists the settings in force at brokers, by RocketMQ's names."""
    found = await brokers.settings(given.caller, cluster=asked.cluster, broker=asked.broker)
    rows = [
        SettingFacts(broker=broker, setting=name, value=_shown(name, value))
        for broker, values in found.items()
        for name, value in values.items()
    ]
    return page_of(rows, asked, lambda row: f"{row.setting}@{row.broker}")


@declared.reads(
    "settings.differences", "/settings/differences", codes=[RequestCode.GET_BROKER_CONFIG]
)
async def differences(given: OperationEnvironment, asked: NothingAsked) -> SettingDifferences:
    """Shows the settings in which brokers differ, such as one that was changed at one of them."""
    found = await brokers.settings(given.caller)
    names = sorted({name for values in found.values() for name in values})
    rows = []
    for name in names:
        values = {broker: each.get(name) for broker, each in found.items()}
        if len(set(values.values())) > 1:
            shown = {
                broker: None if value is None else _shown(name, value)
                for broker, value in values.items()
            }
            rows.append(SettingDifference(setting=name, values=shown))
    return SettingDifferences(brokers=list(found), differences=rows)


@declared.changes(
    "settings.change",
    "PATCH /settings",
    codes=[RequestCode.UPDATE_BROKER_CONFIG],
    is_destructive=True,
)
async def change(given: OperationEnvironment, asked: SettingsWanted) -> ChangeReport:
    """Changes settings of brokers that run, for later starts too; each takes all or none."""
    before = await brokers.settings(given.caller, cluster=asked.cluster, broker=asked.broker)
    done = list(before)
    if not asked.dry_run:
        done = await brokers.change_settings(
            given.caller, asked.settings, cluster=asked.cluster, broker=asked.broker
        )
    changes = [
        ChangeLine(
            what=f"setting {name}",
            broker=broker,
            before=_shown(name, before[broker][name]) if name in before[broker] else None,
            after=_shown(name, value),
        )
        for broker in done
        for name, value in asked.settings.items()
    ]
    return ChangeReport(dry_run=asked.dry_run, changes=changes)


@declared.reads("filters.list", "/filters", codes=[OwnRequestCode.FILTERS])
async def filters_listed(given: OperationEnvironment, asked: FiltersAsked) -> FilterVersions:
    """Lists filters in Python, with what each has judged and whether it is switched off."""
    found = await filters.listed(given.caller, asked.group)
    rows = [
        FilterVersion(
            broker=broker, group=each.group, topic=each.topic, name=each.name,
            version=each.version, is_newest=each.is_newest, is_running=each.is_running,
            judged=each.judged, wanted=each.wanted, off=each.off,
            uploaded_at=time_of(each.uploaded_ms),
        )
        for broker, those in found.items()
        for each in those
    ]  # fmt: skip
    return FilterVersions(filters=rows[:1_000])


@declared.changes(
    "filters.remove",
    "DELETE /filters/{name}",
    codes=[OwnRequestCode.REMOVE_FILTER],
    is_destructive=True,
)
async def remove(given: OperationEnvironment, asked: FilterRemoved) -> ChangeReport:
    """Removes a filter in Python, or one version of it, from all brokers."""
    if asked.dry_run:
        found = await filters.listed(given.caller, asked.group)
        done = [
            broker
            for broker, those in found.items()
            if any(
                (each.topic, each.name) == (asked.topic, asked.name)
                and asked.version in (None, each.version)
                for each in those
            )
        ]
    else:
        target = FilterTarget(asked.group, asked.topic, asked.name)
        done = await filters.remove(
            given.caller, target, now_ms=given.now_ms(), version=asked.version
        )
    before = asked.version or "all versions"
    return ChangeReport(
        dry_run=asked.dry_run,
        changes=[
            ChangeLine(what=f"filter {asked.name}", broker=broker, before=before) for broker in done
        ],
    )


@declared.reads("audit.list", "/audit", codes=[RequestCode.GET_BROKER_CONFIG])
async def audit(given: OperationEnvironment, asked: AuditAsked) -> AuditEntries:
    """Lists who changed what at the servers of this machine."""
    if given.audit_folder is None:
        raise UsageError("no audit log is known here: start with --audit FOLDER")
    # The files ask nobody who reads them, so the brokers are asked whether this user may.
    await brokers.settings(given.caller)
    first = time_text(ms_of(asked.since, 0))
    end = "~" if asked.until is None else time_text(ms_of(asked.until, 0))
    newest: list[AuditEntry] = []
    for each in entries_in(given.audit_folder):
        if (
            first <= each.time < end
            and asked.user in (None, each.user)
            and (asked.name is None or concerns(each, asked.name))
            and not (asked.failed and not each.result)
        ):
            newest.append(each)
            if len(newest) >= 2 * asked.limit:
                del newest[: asked.limit]
    return AuditEntries(entries=[msgspec.to_builtins(each) for each in newest[-asked.limit :]])


def _shown(name: str, value: str) -> str:
    is_secret = name in _OURS or _SECRET.search(name) is not None
    return SECRET_MASK if is_secret and value else value
