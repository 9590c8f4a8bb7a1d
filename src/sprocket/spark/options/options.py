# ruff: noqa: RUF009 - `option` makes a dataclass field
"""The options of `.option(…)` for reading, checked once and frozen.

Names are those of Spark's Kafka source where the meaning is the same, and RocketMQ's own elsewhere.
Spark passes options as texts, and case does not matter in names. An unknown option is refused, and
the error names the nearest one that exists. The result can be pickled.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from sprocket.base.errors import ConfigError
from sprocket.filter.tags import ALL, TagFilter
from sprocket.message.queue import QueueId
from sprocket.spark.options import declare, positions, values
from sprocket.spark.options.body_options import PROFILES, BodyOptions, DecodeOptions
from sprocket.spark.options.credentials import NO_SERVERS, Credentials, with_servers
from sprocket.spark.options.declare import option
from sprocket.spark.options.positions import PositionKind, QueuePositions

if TYPE_CHECKING:
    from sprocket.filter.sql92 import SqlFilter

Read = TypeVar("Read", bound="SelectionOptions")

#: A group that every RocketMQ broker has from its start, so reading creates no group.
READER_GROUP = "TOOLS_CONSUMER"


@dataclass(frozen=True)
class SelectionOptions:
    """Options that choose messages, for reads from brokers and from files."""

    topics: tuple[str, ...] = option(
        "subscribe", values.topics, "Topics to read, separated by commas.", default=()
    )
    pattern: str | None = option(
        "subscribePattern",
        values.pattern,
        "Topics to read, as a regular expression for the whole name. RocketMQ's own, retry and "
        "dead-letter topics are left out unless the expression begins with `%` or `rmq_sys_`.",
    )
    starting_time: QueuePositions | None = option(
        "startingTimestamp",
        positions.parse_time,
        "Where to begin in every queue, by store time in ms since 1970. Overrides the other two.",
    )
    tags: str = option(
        "tags",
        values.tags,
        "Only messages with one of these tags: `paid || new`. The broker filters.",
        default="*",
    )
    sql: str | None = option(
        "sql",
        values.sql,
        "Only messages whose properties fulfil an SQL92 condition: `amount > 5 AND region = 'eu'`. "
        "The broker filters; where it cannot, the task does.",
    )
    fails_on_loss: bool = option(
        "failOnDataLoss",
        values.switch,
        "Fail if messages to read are no longer there; otherwise warn and continue.",
        default=True,
    )
    partitions_min: int = option(
        "minPartitions", values.whole(1, 100_000), "Read with at least so many tasks.", default=0
    )
    has_properties: bool = option(
        "includeHeaders",
        values.switch,
        "Whether the columns include `properties` when no schema is given.",
        default=True,
    )

    @property
    def filter(self) -> TagFilter | SqlFilter:
        """The filter by tag or by SQL."""
        if self.sql is None:
            return TagFilter.parse(self.tags)
        # Most tasks have no condition and do not need to load the parser.
        from sprocket.filter.sql92 import SqlFilter

        return SqlFilter.parse(self.sql)

    def check(self) -> None:
        """Raises ConfigError where options contradict each other."""
        if self.topics and self.pattern:
            raise ConfigError("give subscribe or subscribePattern, not both")
        if self.sql is not None and self.tags != ALL:
            raise ConfigError("give tags or sql, not both; in sql the tag is TAGS")


@dataclass(frozen=True)
class ReadOptions(DecodeOptions, Credentials, SelectionOptions):
    """Options of all reads from brokers."""

    nameservers: tuple[str, ...] = option(
        "namesrvAddr",
        values.addresses,
        "Name servers, `host:port;host:port`. Required.",
        default=(),
    )
    queues: frozenset[QueueId] = option(
        "assign",
        positions.parse_queues,
        'Queues to read: `{"orders": {"broker-a": [0, 1]}}`.',
        default=frozenset(),
    )
    starting: QueuePositions | None = option(
        "startingOffsets",
        values.either,
        "Where to begin: `earliest`, `latest`, `committed` (offsets of the group, and earliest in "
        "queues without one), `group:NAME` (those of another group), `checkpoint:FOLDER` (where "
        'another query stands), or `{"orders": {"broker-a": {"0": 17}}}` with -2 for earliest and '
        "-1 for latest. Default: earliest, in streams latest. A stream that has a checkpoint "
        "continues from there.",
    )
    starting_times: QueuePositions | None = option(
        "startingOffsetsByTimestamp",
        positions.parse_times,
        'Where to begin, by store time in ms: `{"orders": 1700000000000}`, or for each queue. '
        "Overrides `startingOffsets`.",
    )
    time_strategy: str = option(
        "startingOffsetsByTimestampStrategy",
        values.strategy,
        "Where a queue has no message as new as the starting time: begin at its end (`latest`), "
        "or fail (`error`).",
        default="latest",
    )
    group: str = option(
        "group",
        values.group,
        "Consumer group in whose name is read; brokers check its permission. A stream commits to a "
        "group of its own what is done, for tools that watch lag.",
        default=READER_GROUP,
    )
    partition_records_max: int = option(
        "maxRecordsPerPartition",
        values.whole(1),
        "Most offsets that one task reads.",
        default=0,
    )
    pull_timeout_ms: int = option(
        "pullTimeoutMs",
        values.milliseconds(1, 86_400_000),
        "How long a task waits for the next messages of its range, through broken connections "
        "and restarting brokers, before it fails.",
        default=120_000,
    )
    pull_bytes: int = option(
        "pullMaxBytes",
        values.whole(1024, 8 * 1024 * 1024),
        "Most bytes in one pull. Brokers may return fewer.",
        default=1024 * 1024,
    )
    pull_records: int = option(
        "pullMaxRecords",
        values.whole(1, 65_536),
        "Most messages in one pull. Brokers may return fewer.",
        default=8192,
    )
    offset_retries: int = option(
        "fetchOffset.numRetries",
        values.whole(0, 1000),
        "How many times a failed query of offsets is repeated.",
        default=3,
    )
    offset_retry_ms: int = option(
        "fetchOffset.retryIntervalMs",
        values.whole(0, 3_600_000),
        "Pause before a query of offsets is repeated, ms.",
        default=200,
    )

    def check(self) -> None:
        """Raises ConfigError unless it is clear what to read, where from, and as whom."""
        if not self.nameservers:
            raise ConfigError(NO_SERVERS)
        ways = {
            "subscribe": self.topics,
            "subscribePattern": self.pattern,
            "assign": self.queues,
        }
        chosen = [name for name, value in ways.items() if value]
        if len(chosen) != 1:
            said = f"not {' and '.join(chosen)} together" if chosen else "none is given"
            raise ConfigError(f"give one of subscribe, subscribePattern, assign: {said}")
        super().check()
        self.check_bodies()
        self.check_credentials()
        begins = self.starting.everywhere if self.starting else None
        if (
            begins is not None
            and begins.kind is PositionKind.COMMITTED
            and (self.starting is None or self.starting.group is None)
            and self.group == READER_GROUP
        ):
            raise ConfigError(
                "startingOffsets committed needs a group that has committed: give group"
            )


@dataclass(frozen=True)
class Pushed:
    """Whether batch reads accept pushed filters from Spark."""

    takes_filters: bool = option(
        "pushDownPredicate",
        values.switch,
        "Whether conditions on topic, queue, offset, tag and store time narrow what is read. Only "
        "for a table that is used in one query, once: Spark reads it again as it was narrowed.",
        default=False,
    )


@dataclass(frozen=True)
class BatchOptions(Pushed, ReadOptions):
    """Options of batch reads from brokers, with their end."""

    ending: QueuePositions | None = option(
        "endingOffsets",
        values.latest_or_json,
        "Where to end, this offset not included: `latest` (the default), or a JSON of offsets with "
        "-1 for latest.",
    )
    ending_times: QueuePositions | None = option(
        "endingOffsetsByTimestamp",
        positions.parse_times,
        "Where to end, by store time in ms, for each topic or queue. Overrides `endingOffsets`.",
    )
    ending_time: QueuePositions | None = option(
        "endingTimestamp",
        positions.parse_time,
        "Where to end in every queue, by store time in ms since 1970; a message stored at that "
        "time is not read. Overrides the other two.",
    )


@dataclass(frozen=True)
class StreamOptions(ReadOptions):
    """Options of streaming reads, with the size of micro-batches."""

    trigger_records_max: int = option(
        "maxOffsetsPerTrigger",
        values.whole(1),
        "Most offsets in one micro-batch, shared among the queues by what waits in each.",
        default=0,
    )
    trigger_bytes_max: int = option(
        "maxBytesPerTrigger",
        values.size,
        "About the most bytes in one micro-batch: `64m`, `512k`. Records count as they are stored, "
        "before `tags` and `sql`; their size is estimated from a sample.",
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
        values.milliseconds(0, 3_600_000),
        "Time between two updates of topics and queues, ms.",
        default=5_000,
    )


@dataclass(frozen=True)
class StoreOptions(DecodeOptions, Pushed, SelectionOptions):
    """Options of reads from the files of a broker's store."""

    store: str = option(
        "store",
        values.text,
        "Folder of a broker's store: its log files are read, and no broker need run. All tasks "
        "must reach it under this path. For a log on several disks the other folders follow, "
        "separated by `;`.",
        default="",
    )
    broker: str | None = option(
        "storeBroker", values.text, "What the column `broker` shows; null without it."
    )
    ending_time: QueuePositions | None = option(
        "endingTimestamp",
        positions.parse_time,
        "Where to end in every queue, by store time in ms since 1970; a message stored at that "
        "time is not read. Overrides the other two.",
    )
    checks_bodies: bool = option(
        "checkBodies",
        values.switch,
        "Whether every body is compared with its checksum. Those of the last file that the broker "
        "had not noted as being on the disk always are.",
        default=False,
    )

    def check(self) -> None:
        """Raises ConfigError where options contradict each other."""
        super().check()
        self.check_bodies()
        if (self.profile or self.config_file) and self.registry != PROFILES:
            raise ConfigError("a store needs no profile but for schemaRegistry profile")


#: The ways of reading, and what an error calls them.
_READS: dict[type[SelectionOptions], str] = {
    BatchOptions: "batch reads",
    StreamOptions: "streams",
    StoreOptions: "reads of a store",
}


def read_options(given: Mapping[str, str], kind: type[Read]) -> Read:
    """The options of one way of reading.

    Args:
        kind: `BatchOptions`, `StreamOptions` or `StoreOptions`.

    Raises:
        ConfigError: an option is unknown, ill-typed or missing, or two contradict each other.
    """
    others = tuple(other for other in _READS if other is not kind)
    options = with_servers(declare.parse(given, kind=kind, others=others, reads=_READS[kind]))
    options.check()
    return options


def value_ddl_of(given: Mapping[str, str]) -> str:
    """The type of the column `value` that the options of a read say.

    Raises:
        ConfigError: they do not say it.
        SchemaNotFound, RegistryUnavailable: the registry does not say it.
    """
    names = declare.declared(BodyOptions)
    bodies = {name: value for name, value in given.items() if name.lower() in names}
    options = declare.parse(bodies, kind=BodyOptions, others=(), reads="bodies")
    options.check_bodies()
    topic = next((value for name, value in given.items() if name.lower() == "subscribe"), "")
    return options.value_ddl(tuple(one.strip() for one in topic.split(",") if one.strip()))


def check_names(given: Iterable[str]) -> None:
    """Raises ConfigError for a name that is no option of any read."""
    declare.check_names(given, tuple(_READS))
