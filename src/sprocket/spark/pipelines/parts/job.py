"""What a pipeline is asked to do: a frozen value whose fields say for themselves what they mean.

The same declarations are the keyword arguments of the library, the options of the command line and
the tables of the guide, so the three cannot differ.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import MISSING, Field, asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from sprocket.base.errors import UsageError
from sprocket.spark.pipelines.parts.progress import Watch, unwatched
from sprocket.spark.pipelines.parts.servers import Keys, Servers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from sprocket.spark.pipelines.parts.report import Report

Kind = Literal["text", "words", "whole", "number", "switch", "time"]


class About(NamedTuple):
    """What is known of a field besides its type and default.

    Attributes:
        doc: one sentence.
        option: its name on the command line, without the dashes.
        kind: how the command line reads it. Words may be given again; a time is ms since 1970 in
            the library.
        choices: the texts that it takes; empty for any.
    """

    doc: str
    option: str
    kind: Kind
    choices: tuple[str, ...]


def setting(
    doc: str,
    *,
    option: str,
    kind: Kind = "text",
    default: Any = MISSING,
    choices: tuple[str, ...] = (),
) -> Any:
    """Declares a field of a job; without a default it must be given."""
    about = About(doc, option, kind, choices)
    if default is MISSING:
        return field(metadata={"about": about})
    return field(default=default, metadata={"about": about})


def follows_setting() -> Any:
    """Declares whether a job goes on and on."""
    doc = "Go on until Ctrl-C; else end with what is there now."
    return setting(doc, option="follow", kind="switch", default=False)


def every_setting(seconds: float) -> Any:
    """Declares how long a job that goes on waits between two micro-batches."""
    doc = "Seconds between micro-batches with --follow."
    return setting(doc, option="every", kind="number", default=seconds)


def batch_rows_setting(most: int) -> Any:
    """Declares the size of a job's micro-batches."""
    doc = "Most messages in one micro-batch."
    return setting(doc, option="batch-rows", kind="whole", default=most)


def settings(kind: type[Job]) -> list[tuple[Field[Any], About]]:
    """The fields that people set, and what they say of themselves."""
    return [(one, one.metadata["about"]) for one in fields(kind) if "about" in one.metadata]


class Summary(Protocol):
    """What a run of a pipeline did and found."""

    def report(self) -> Report:
        """The same as a page."""
        ...


@dataclass(frozen=True, kw_only=True)
class Job:
    """What all pipelines need to know.

    Attributes:
        keys: for brokers with access control. The command line takes them from its settings.
    """

    nameservers: str = setting(
        "Name servers of the cluster, with ; in between.", option="nameserver"
    )
    options: tuple[str, ...] = setting(
        "Further option of the rocketmq source, NAME=VALUE; may be given again.",
        option="option",
        kind="words",
        default=(),
    )

    keys: Keys | None = None

    def __post_init__(self) -> None:
        for one, said in settings(type(self)):
            value = getattr(self, one.name)
            if said.choices and value not in said.choices:
                raise UsageError(f"{said.option} is one of {', '.join(said.choices)}: {value!r}")
            if said.kind in ("whole", "number") and value is not None and value < 0:
                raise UsageError(f"{said.option} cannot be negative: {value}")

    def run(self, session: SparkSession, watch: Watch = unwatched) -> Summary:
        """Does what is left to do, and says what was done.

        Args:
            session: where to run.
            watch: told now and then how far it is.

        Raises:
            UsageError: what is asked for makes no sense.
            SprocketError: reading or writing failed; the next run goes on from there.
        """
        raise NotImplementedError

    @property
    def servers(self) -> Servers:
        """The cluster."""
        return Servers(self.nameservers, self.keys)

    def source(self) -> dict[str, str]:
        """Options of the `rocketmq` source and sink: where, and what was given by hand."""
        chosen = self.servers.options()
        for text in self.options:
            name, separator, value = text.partition("=")
            if not separator or not name.strip():
                raise UsageError(f"an option is NAME=VALUE, not {text!r}")
            chosen[name.strip()] = value
        return chosen

    def digest(self, *names: str) -> str:
        """A short text that is the same for jobs that are equal in these fields."""
        values = {name: value for name, value in asdict(self).items() if name in names}
        whole = json.dumps([type(self).__name__, values], sort_keys=True)
        return hashlib.sha256(whole.encode()).hexdigest()[:12]


@dataclass(frozen=True, kw_only=True)
class TopicJob(Job):
    """What pipelines need to know that read topics."""

    topics: tuple[str, ...] = setting(
        "Topic to read; may be given again.", option="topic", kind="words", default=()
    )
    pattern: str | None = setting(
        "Topics to read, as a regular expression for the whole name.",
        option="pattern",
        default=None,
    )
    tags: str = setting(
        "Only messages with one of these tags, with || in between.", option="tags", default="*"
    )
    since_ms: int | None = setting(
        "Only what was stored from then on.", option="since", kind="time", default=None
    )
    allows_loss: bool = setting(
        "Go on where messages are gone before they were read, instead of failing.",
        option="allow-loss",
        kind="switch",
        default=False,
    )

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
