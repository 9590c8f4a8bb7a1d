"""The settings of a pipeline: a frozen value whose fields carry their own documentation.

The library's keyword arguments, the options of the command line and the tables of the guide are
made from the same declarations, so the three cannot differ.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from dataclasses import MISSING, Field, asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from sprocket.base.errors import UsageError
from sprocket.base.suggestions import shown
from sprocket.spark.options.body_options import PROFILES
from sprocket.spark.pipelines.parts.progress import Watch, unwatched
from sprocket.spark.pipelines.parts.servers import AccessKeys, Servers

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from sprocket.admin.caller import Caller
    from sprocket.remoting.profiles import Profile
    from sprocket.remoting.tls.settings import ClientTls
    from sprocket.spark.pipelines.parts.report import Report

Kind = Literal["text", "words", "whole", "number", "switch", "time", "profile"]


class FieldInfo(NamedTuple):
    """What is known of a field besides its type and default.

    Attributes:
        doc: one sentence.
        option: its name on the command line, without the dashes.
        kind: how the command line parses it. `words` may be repeated; a `time` is ms since 1970
            in the library, and a `profile` a `Profile`.
        choices: the allowed texts; empty for any.
        least: the smallest number that is allowed.
    """

    doc: str
    option: str
    kind: Kind
    choices: tuple[str, ...]
    least: int


def setting(
    doc: str,
    *,
    option: str,
    kind: Kind = "text",
    default: Any = MISSING,
    choices: tuple[str, ...] = (),
    least: int = 0,
    is_shown: bool = True,
) -> Any:
    """Declares a field of a job; a field without a default is required.

    Args:
        is_shown: whether the job's `repr` has it.
    """
    about = FieldInfo(doc, option, kind, choices, least)
    return field(default=default, repr=is_shown, metadata={"about": about})


def follows_setting() -> Any:
    """Declares whether a job runs until it is stopped."""
    doc = "Run until Ctrl-C; otherwise end with the messages that are there now."
    return setting(doc, option="follow", kind="switch", default=False)


def every_setting(seconds: float) -> Any:
    """Declares the time between micro-batches of a job that runs until it is stopped."""
    doc = "Seconds between micro-batches with --follow."
    return setting(doc, option="every", kind="number", default=seconds)


def batch_rows_setting(most: int) -> Any:
    """Declares the size of a job's micro-batches."""
    doc = "Most messages in one micro-batch."
    return setting(doc, option="batch-rows", kind="whole", default=most, least=1)


def to_profile_setting() -> Any:
    """Declares the profile of a second cluster that a job writes to."""
    doc = "Profile of the cluster to write to, with its keys and TLS."
    return setting(doc, option="to-profile", kind="profile", default=None)


def settings(kind: type[Job]) -> list[tuple[Field[Any], FieldInfo]]:
    """The fields that people set, with their declarations."""
    return [(one, one.metadata["about"]) for one in fields(kind) if "about" in one.metadata]


def _check_number(info: FieldInfo, value: float) -> None:
    """Raises UsageError for a number that a setting cannot have."""
    if isinstance(value, float) and not math.isfinite(value):
        raise UsageError(f"{info.option} is a number, not {value}")
    if value < 0:
        raise UsageError(f"{info.option} cannot be negative: {value}")
    if value < info.least:
        raise UsageError(f"{info.option} must be at least {info.least}, not {value}")


class Summary(Protocol):
    """What a run of a pipeline did and found."""

    def report(self) -> Report:
        """The same figures as a report."""
        ...


@dataclass(frozen=True, kw_only=True)
class Job:
    """Settings of all pipelines.

    Attributes:
        keys: for brokers with access control. The command line reads them from its settings.
        tls: how connections speak TLS; None for plain ones. The command line reads it likewise.
        profile: where keys and TLS are instead; tasks then read them from its file.
    """

    nameservers: str = setting("Name servers of the cluster, separated by ;.", option="nameserver")
    options: tuple[str, ...] = setting(
        "Further option of the rocketmq source, NAME=VALUE; may be repeated.",
        option="option",
        kind="words",
        default=(),
        is_shown=False,
    )

    keys: AccessKeys | None = None
    tls: ClientTls | None = None
    profile: Profile | None = None

    def __post_init__(self) -> None:
        for one, info in settings(type(self)):
            value = getattr(self, one.name)
            if value is None or value == one.default:
                continue
            if info.choices and value not in info.choices:
                raise UsageError(f"{info.option} is one of {', '.join(info.choices)}: {value!r}")
            if info.kind in ("whole", "number"):
                _check_number(info, value)
            if info.kind == "words" and isinstance(value, str):
                raise UsageError(f"{info.option} is a tuple of texts, such as ({shown(value)},)")
            # A variable of a shell that is not set is an empty text, and not the default.
            words = value if info.kind == "words" else (value,)
            if any(isinstance(word, str) and not word.strip() for word in words):
                raise UsageError(f"{info.option} is empty")

    def run(self, session: SparkSession, watch: Watch = unwatched) -> Summary:
        """Does the work that is left, and returns what was done.

        Args:
            session: the Spark session to run in.
            watch: called with the progress after each piece of work.

        Raises:
            UsageError: the settings contradict each other.
            SprocketError: reading or writing failed; the next run continues from there.
        """
        raise NotImplementedError

    def check(self) -> None:
        """Looks up what the job reads, before Spark is started for it.

        Raises:
            UsageError: the settings contradict each other.
            TopicNotFound: no broker has a topic.
            TransportError: the cluster cannot be reached.
        """

    @property
    def servers(self) -> Servers:
        """The cluster."""
        return Servers(self.nameservers, self.keys, self.tls, self.profile)

    def source(self) -> dict[str, str]:
        """Options of the `rocketmq` source and sink: those of the cluster, and `options`."""
        chosen = self.servers.options()
        for text in self.options:
            name, separator, value = text.partition("=")
            if not separator or not name.strip():
                raise UsageError(f"an option is NAME=VALUE, not {text!r}")
            chosen[name.strip()] = value
        registry = next((chosen[name] for name in chosen if name.lower() == "schemaregistry"), None)
        if registry not in (None, PROFILES):
            # Secrets do not belong into a command.
            from sprocket.schemas.http_registry import ENVIRONMENT

            for attribute, variable in ENVIRONMENT.items():
                if variable in os.environ:
                    name = f"schemaRegistry{attribute.capitalize()}"
                    chosen.setdefault(name, os.environ[variable])
        return chosen

    def digest(self, *names: str) -> str:
        """A short text that is equal for jobs with equal values in these fields."""
        values = {name: value for name, value in asdict(self).items() if name in names}
        whole = json.dumps([type(self).__name__, values], sort_keys=True)
        return hashlib.sha256(whole.encode()).hexdigest()[:12]


@dataclass(frozen=True, kw_only=True)
class TopicJob(Job):
    """Settings of pipelines that read topics."""

    topics: tuple[str, ...] = setting(
        "Topic to read; may be repeated.", option="topic", kind="words", default=()
    )
    pattern: str | None = setting(
        "Topics to read, as a regular expression for the whole name.",
        option="pattern",
        default=None,
    )
    tags: str = setting(
        "Only messages with one of these tags, separated by ||.", option="tags", default="*"
    )
    since_ms: int | None = setting(
        "Only messages stored at that time or later.", option="since", kind="time", default=None
    )
    allows_loss: bool = setting(
        "Continue if messages were deleted before they were read, instead of failing.",
        option="allow-loss",
        kind="switch",
        default=False,
    )

    def check(self) -> None:
        """See `Job.check`."""
        from sprocket.admin.topics import route

        async def found(caller: Caller) -> None:
            for topic in self.topics:
                await route(caller, topic)

        self.reading()
        self.servers.ask(found)

    def reading(self) -> dict[str, str]:
        """The options of the `rocketmq` source."""
        if bool(self.topics) == (self.pattern is not None):
            raise UsageError("say what to read: topics, or a pattern")
        chosen = {**self.source(), "failOnDataLoss": str(not self.allows_loss)}
        if self.pattern is not None:
            chosen["subscribePattern"] = self.pattern
        else:
            chosen["subscribe"] = ",".join(self.topics)
        if self.tags != "*":
            chosen["tags"] = self.tags
        if self.since_ms is not None:
            chosen["startingTimestamp"] = str(self.since_ms)
        return chosen

    def stream(
        self,
        session: SparkSession,
        columns: str | StructType,
        *,
        batch_rows: int,
        group: str | None = None,
    ) -> DataFrame:
        """The messages as a stream that begins with the oldest ones.

        Args:
            batch_rows: the most in one micro-batch.
            group: the consumer group whose offsets follow; None for none.
        """
        options = {"startingOffsets": "earliest", **self.reading()}
        options["maxOffsetsPerTrigger"] = str(batch_rows)
        if group is not None:
            options["group"] = group
        return session.readStream.format("rocketmq").schema(columns).options(**options).load()
