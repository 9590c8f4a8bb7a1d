"""The types that several operations share: parameters, pages, what a change says. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Generic, TypeVar

import msgspec
from msgspec import Meta

from sprocket.admin.config_changes import ConfigChange

C = TypeVar("C")
T = TypeVar("T")

#: The most items of a page.
ITEMS_MAX = 1_000

#: A name as RocketMQ's servers take it; each of them says more precisely what it takes.
_NAME = Meta(min_length=1, max_length=255, pattern=r"^[^\x00-\x1f\x7f/\\]+$")
TopicName = Annotated[str, _NAME, Meta(description="Name of a topic.")]
GroupName = Annotated[str, _NAME, Meta(description="Name of a consumer group.")]
UserName = Annotated[str, _NAME, Meta(description="Name of a user: the access key.")]
OneBroker = Annotated[str, _NAME, Meta(description="Name of a broker.")]
OnlyBroker = Annotated[
    Annotated[str, _NAME] | None, Meta(description="Only the broker of this name.")
]
OnlyCluster = Annotated[
    Annotated[str, _NAME] | None, Meta(description="Only the brokers of this cluster.")
]
OnlyTopic = Annotated[Annotated[str, _NAME] | None, Meta(description="Only this topic.")]
Search = Annotated[
    Annotated[str, Meta(max_length=255)] | None,
    Meta(description="Only names that contain this text, in any case."),
]
Limit = Annotated[int, Meta(ge=1, le=ITEMS_MAX, description="At most so many items.")]
After = Annotated[
    Annotated[str, Meta(max_length=1_024)] | None,
    Meta(description="The `next` of the page before; none for the first page."),
]
Since = Annotated[
    Annotated[datetime, Meta(tz=True)] | None,
    Meta(description="Only what is from this time on, such as 2030-01-31T08:00:00Z."),
]
Until = Annotated[
    Annotated[datetime, Meta(tz=True)] | None, Meta(description="Only what is before this time.")
]
QueueNumber = Annotated[int, Meta(ge=0, le=2**31 - 1, description="Number of a queue.")]
Offset = Annotated[int, Meta(ge=0, le=2**62, description="A queue offset.")]


class Asked(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The parameters of an operation."""


class NothingAsked(Asked, frozen=True, kw_only=True):
    """No parameters."""


class PageAsked(Asked, frozen=True, kw_only=True):
    """Which page of a list."""

    search: Search = None
    limit: Limit = 100
    after: After = None


class ChangeAsked(Asked, frozen=True, kw_only=True):
    """The parameters of a change."""

    dry_run: Annotated[
        bool, Meta(description="Whether it is only said what would change, and nothing changes.")
    ] = False


class Page(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """A page of a list."""

    items: list[T]
    total: Annotated[int | None, Meta(description="Items of all pages, if that is known.")] = None
    next: Annotated[
        str | None, Meta(description="`after` of the next page; none if this is the last.")
    ] = None


class ChangeLine(msgspec.Struct, frozen=True, kw_only=True):
    """What a change did, or would do, at one place."""

    what: Annotated[str, Meta(description="What it is about, such as a topic or a queue.")]
    broker: Annotated[str | None, Meta(description="The broker that it is at.")] = None
    before: Annotated[Any, Meta(description="As it was; none if it was not there.")] = None
    after: Annotated[Any, Meta(description="As it is now; none if it is gone.")] = None


class ChangeReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a change did; of a dry run, what it would do."""

    dry_run: bool
    changes: list[ChangeLine]


def report_of(
    asked: ChangeAsked,
    what: str,
    changes: Iterable[ConfigChange[C]],
    shown: Callable[[str, C], Any],
) -> ChangeReport:
    """The report of changes of a topic or a group.

    Args:
        shown: a broker's configuration as the report has it.
    """
    lines = [
        ChangeLine(
            what=what,
            broker=each.broker,
            before=None if each.before is None else shown(each.broker, each.before),
            after=shown(each.broker, each.after),
        )
        for each in changes
    ]
    return ChangeReport(dry_run=asked.dry_run, changes=lines)


def page_of(
    rows: Iterable[T], asked: PageAsked, key: Callable[[T], str], *, is_sorted: bool = False
) -> Page[T]:
    """The page of a list that was asked for.

    Args:
        key: the name of a row, by which rows are sorted and searched; no two have the same.
    """
    wanted = (asked.search or "").lower()
    found = [row for row in rows if wanted in key(row).lower()]
    if not is_sorted:
        found.sort(key=key)
    total = len(found)
    if asked.after is not None:
        found = [row for row in found if key(row) > asked.after]
    items = found[: asked.limit]
    return Page(items=items, total=total, next=key(items[-1]) if len(items) < len(found) else None)


def time_of(ms: int) -> datetime | None:
    """A time of ms since 1970 UTC; None for 0, and for what is no time."""
    try:
        return datetime.fromtimestamp(ms / 1_000, UTC) if ms > 0 else None
    except (OverflowError, ValueError, OSError):
        return None


def ms_of(time: datetime | None, otherwise: int) -> int:
    """The ms since 1970 UTC of a time that was asked for."""
    return otherwise if time is None else max(int(time.timestamp() * 1_000), 0)


def fields_of(value: Any) -> Any:
    """A named tuple or a struct as a dictionary, also inside lists and dictionaries."""
    if hasattr(value, "_asdict"):
        return {name: fields_of(each) for name, each in value._asdict().items()}
    if isinstance(value, msgspec.Struct):
        return {name: fields_of(getattr(value, name)) for name in type(value).__struct_fields__}
    if isinstance(value, Mapping):
        return {str(name): fields_of(each) for name, each in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [fields_of(each) for each in value]
    return value
