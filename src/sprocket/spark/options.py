# ruff: noqa: RUF009 - `option` makes a dataclass field
"""What a user may say with `.option(…)` when reading, checked once and frozen.

Names are those of Spark's Kafka source where the meaning is the same, RocketMQ's own where it is
not. Spark hands options over as text; names count without regard to upper and lower case. An
option that does not exist is refused with the nearest one that does. The result can be pickled.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

from sprocket.base.errors import ConfigError, SprocketError
from sprocket.filter.tags import TagFilter
from sprocket.message.queue import QueueId
from sprocket.spark import positions, values
from sprocket.spark.positions import Positions
from sprocket.spark.values import Parser

#: A group that every RocketMQ broker knows from its start: reading leaves nothing behind.
READER_GROUP = "TOOLS_CONSUMER"

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class About:
    """What is known of an option besides its default."""

    name: str
    parse: Parser
    doc: str


def option(name: str, parse: Parser, doc: str, *, default: Any = None) -> Any:
    """Declares an option as a dataclass field.

    Args:
        name: what the user writes.
        parse: text to value; gets the name too, for its errors.
        doc: one sentence, shown in the documentation.
    """
    return field(default=default, metadata={"option": About(name, parse, doc)})


@dataclass(frozen=True)
class ReadOptions:
    """How to read, as the user asked."""

    nameservers: tuple[str, ...] = option(
        "namesrvAddr",
        values.addresses,
        "Name servers, `host:port;host:port`. Required.",
        default=(),
    )
    topics: tuple[str, ...] = option(
        "subscribe", values.topics, "Topics to read, with commas in between.", default=()
    )
    pattern: str | None = option(
        "subscribePattern",
        values.pattern,
        "Topics to read, as a regular expression for the whole name. RocketMQ's own, retry and "
        "dead-letter topics are left out unless the expression begins with `%` or `rmq_sys_`.",
    )
    queues: frozenset[QueueId] = option(
        "assign",
        positions.parse_queues,
        'Queues to read: `{"orders": {"broker-a": [0, 1]}}`.',
        default=frozenset(),
    )
    starting: Positions | None = option(
        "startingOffsets",
        values.either,
        'Where to begin: `earliest`, `latest`, or `{"orders": {"broker-a": {"0": 17}}}` with -2 '
        "for earliest and -1 for latest. Default: earliest, in streams latest. A stream that has a "
        "checkpoint goes on from there.",
    )
    starting_times: Positions | None = option(
        "startingOffsetsByTimestamp",
        positions.parse_times,
        'Where to begin, by store time in ms: `{"orders": 1700000000000}`, or for each queue. '
        "Goes before `startingOffsets`.",
    )
    starting_time: Positions | None = option(
        "startingTimestamp",
        positions.parse_time,
        "Where to begin in every queue, by store time in ms since 1970. Goes before the other two.",
    )
    time_strategy: str = option(
        "startingOffsetsByTimestampStrategy",
        values.strategy,
        "Where a queue has no message as new as the starting time: begin at its end (`latest`), "
        "or fail (`error`).",
        default="latest",
    )
    tags: str = option(
        "tags",
        values.tags,
        "Only messages with one of these tags: `paid || new`. The broker filters.",
        default="*",
    )
    group: str = option(
        "group",
        values.group,
        "Consumer group in whose name is read; brokers check its permission. A stream commits to a "
        "group of its own what is done, for tools that watch lag; it never reads it back.",
        default=READER_GROUP,
    )
    fails_on_loss: bool = option(
        "failOnDataLoss",
        values.switch,
        "Fail when messages to be read are no longer there; otherwise warn and go on.",
        default=True,
    )
    partitions_min: int = option(
        "minPartitions", values.whole(1, 100_000), "Read with at least so many tasks.", default=0
    )
    partition_records_max: int = option(
        "maxRecordsPerPartition",
        values.whole(1),
        "Read at most so many offsets in one task.",
        default=0,
    )
    has_properties: bool = option(
        "includeHeaders",
        values.switch,
        "Whether the columns include `properties` when no schema is given.",
        default=True,
    )
    pull_timeout_ms: int = option(
        "pullTimeoutMs",
        values.whole(1, 86_400_000),
        "How long a task waits for the next messages of its range, through broken connections "
        "and restarting brokers, before it fails.",
        default=120_000,
    )
    pull_bytes: int = option(
        "pullMaxBytes",
        values.whole(1024, 8 * 1024 * 1024),
        "Most bytes to ask of a broker at once. Brokers may give less.",
        default=1024 * 1024,
    )
    pull_records: int = option(
        "pullMaxRecords",
        values.whole(1, 65_536),
        "Most messages to ask of a broker at once. Brokers may give less.",
        default=8192,
    )
    offset_retries: int = option(
        "fetchOffset.numRetries",
        values.whole(0, 1000),
        "How many times to ask again when offsets cannot be had.",
        default=3,
    )
    offset_retry_ms: int = option(
        "fetchOffset.retryIntervalMs",
        values.whole(0, 3_600_000),
        "Pause before asking for offsets again, ms.",
        default=200,
    )

    @property
    def tag_filter(self) -> TagFilter:
        """The tags, parsed."""
        return TagFilter.parse(self.tags)


@dataclass(frozen=True)
class BatchOptions(ReadOptions):
    """How to read once: where it ends, too."""

    ending: Positions | None = option(
        "endingOffsets",
        values.latest_or_json,
        "Where to end, this offset not included: `latest` (the default), or a JSON of offsets with "
        "-1 for latest.",
    )
    ending_times: Positions | None = option(
        "endingOffsetsByTimestamp",
        positions.parse_times,
        "Where to end, by store time in ms, for each topic or queue. Goes before `endingOffsets`.",
    )
    ending_time: Positions | None = option(
        "endingTimestamp",
        positions.parse_time,
        "Where to end in every queue, by store time in ms since 1970; a message stored at that "
        "time is not read. Goes before the other two.",
    )


@dataclass(frozen=True)
class StreamOptions(ReadOptions):
    """How to read on and on: how much at a time, too."""

    trigger_records_max: int = option(
        "maxOffsetsPerTrigger",
        values.whole(1),
        "Most offsets in one micro-batch, shared among the queues by what waits in each.",
        default=0,
    )
    trigger_records_min: int = option(
        "minOffsetsPerTrigger",
        values.whole(1),
        "Wait until so many offsets have come, or `maxTriggerDelay` has passed.",
        default=0,
    )
    trigger_delay_ms: int = option(
        "maxTriggerDelay",
        values.duration,
        "Longest wait for `minOffsetsPerTrigger`: `15m`, `30s`, `500ms`. Default: 15m.",
        default=900_000,
    )
    route_refresh_ms: int = option(
        "routeRefreshMs",
        values.whole(0, 3_600_000),
        "How often topics and queues are looked up anew, ms.",
        default=5_000,
    )


#: What people write who come from elsewhere.
_ELSEWHERE = {
    "kafka.bootstrap.servers": "namesrvAddr",
    "bootstrap.servers": "namesrvAddr",
    "nameserver.addr": "namesrvAddr",
    "nameserver": "namesrvAddr",
    "nameservers": "namesrvAddr",
    "topic": "subscribe",
    "topics": "subscribe",
    "path": "subscribe",
    "topicspattern": "subscribePattern",
    "groupid": "group",
    "kafka.group.id": "group",
    "consumergroup": "group",
    "subexpression": "tags",
    "tag": "tags",
    "kafkaconsumer.polltimeoutms": "pullTimeoutMs",
    "starttimestamp": "startingTimestamp",
    "endtimestamp": "endingTimestamp",
}


def parse(given: Mapping[str, str], *, kind: type[T], others: type[Any] | None, reads: str) -> T:
    """Reads options into a dataclass whose fields are made with `option`.

    Args:
        others: options of another way, refused with another text; None if there is none.
        reads: what `kind` is for, in words.

    Raises:
        ConfigError: an option does not exist, or its value cannot be taken. Names the option.
    """
    known = _declared(kind)
    elsewhere = {} if others is None else _declared(others)
    found: dict[str, Any] = {}
    for name, value in given.items():
        entry = known.get(name.lower())
        if entry is None and name.lower() in elsewhere:
            raise ConfigError(f"option {elsewhere[name.lower()][1].name} is not for {reads}")
        if entry is None:
            raise ConfigError(unknown(name, [about.name for _, about in known.values()]))
        attribute, about = entry
        try:
            found[attribute] = about.parse(about.name, str(value))
        except ConfigError:
            raise
        except SprocketError as error:
            said = str(error)
            raise ConfigError(
                said if about.name in said else f"option {about.name}: {said}"
            ) from None
    return kind(**found)


def _declared(kind: type[Any]) -> dict[str, tuple[str, About]]:
    """Attribute and declaration of each option, by its name in lower case."""
    return {
        one.metadata["option"].name.lower(): (one.name, one.metadata["option"])
        for one in fields(kind)
    }


def unknown(name: str, names: list[str]) -> str:
    """The error text for an option that does not exist."""
    by_lower = {one.lower(): one for one in names}
    nearest = _ELSEWHERE.get(name.lower())
    if nearest not in names:
        close = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=0.6)
        nearest = by_lower[close[0]] if close else None
    hint = f"did you mean {nearest}?" if nearest else f"there are: {', '.join(names)}"
    return f"the rocketmq source has no option {name}: {hint}"


def batch_options(given: Mapping[str, str]) -> BatchOptions:
    """The options of a batch read.

    Raises:
        ConfigError: an option is unknown, ill-typed or missing, or two contradict each other.
    """
    options = parse(given, kind=BatchOptions, others=StreamOptions, reads="batch reads")
    check_source(options)
    return options


def stream_options(given: Mapping[str, str]) -> StreamOptions:
    """The options of a streaming read.

    Raises:
        ConfigError: an option is unknown, ill-typed or missing, or two contradict each other.
    """
    options = parse(given, kind=StreamOptions, others=BatchOptions, reads="streams")
    check_source(options)
    return options


def check_names(given: Iterable[str]) -> None:
    """Raises ConfigError for a name that is neither an option of batch reads nor of streams."""
    known = {**_declared(BatchOptions), **_declared(StreamOptions)}
    for name in given:
        if name.lower() not in known:
            raise ConfigError(unknown(name, [about.name for _, about in known.values()]))


def check_source(options: ReadOptions) -> None:
    """Raises ConfigError unless it is clear where to read from."""
    if not options.nameservers:
        raise ConfigError("option namesrvAddr is missing: the name servers, host:port")
    ways = {
        "subscribe": options.topics,
        "subscribePattern": options.pattern,
        "assign": options.queues,
    }
    chosen = [name for name, value in ways.items() if value]
    if len(chosen) != 1:
        said = f"not {' and '.join(chosen)} together" if chosen else "none is given"
        raise ConfigError(f"give one of subscribe, subscribePattern, assign: {said}")
