"""Reports the dead letters of consumer groups by reason and topic, and sends chosen ones back.

Letters stay in their topic when they are sent back. A run after a stop continues behind the last
whole slice, so at most `slice_rows` letters are sent back twice.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from sprocket.base.errors import UsageError
from sprocket.message import properties as names
from sprocket.message.topic import DEAD_LETTER_PREFIX, dead_letter_topic, is_dead_letter_topic
from sprocket.spark.pipelines.parts import offsets, returning
from sprocket.spark.pipelines.parts.folder import Folder
from sprocket.spark.pipelines.parts.job import Job, setting
from sprocket.spark.pipelines.parts.progress import Progress, Watch, unwatched
from sprocket.spark.pipelines.parts.queue_witnesses import QueueWitnesses
from sprocket.spark.pipelines.parts.report import Bars, Lines, Report, Table, moment
from sprocket.spark.pipelines.parts.slices import SliceProgress, Slices, WorkUnit
from sprocket.spark.pipelines.parts.spread import Points, over_time
from sprocket.spark.pipelines.replay import chosen

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_COLUMNS = (
    "topic string, broker string, queue_id int, queue_offset bigint, key string, tag string, "
    "properties map<string,string>, born_timestamp timestamp, store_timestamp timestamp, "
    "reconsume_times int, message_id string, offset_id string, born_host string, flag int"
)
_WITH_BODY = f"{_COLUMNS}, body binary"
_KINDS_MAX, _LETTERS_MAX = 1000, 100


class DeadLetterCounts(NamedTuple):
    """Letters of a group that came from one topic, for one reason.

    Attributes:
        reason: value of the chosen property; `-` without one.
        retries: the most deliveries after the first.
        first_ms, last_ms: store times of the oldest and the newest letter.
    """

    group: str
    origin: str
    reason: str
    letters: int
    retries: int
    first_ms: int
    last_ms: int


@dataclass(frozen=True)
class Letters:
    """What was found, and what was sent back.

    Attributes:
        rows: letters that this run sent back; without sending back, those that were chosen.
        found: letters that were chosen.
        kinds: numbers by group, topic and reason, the largest first, 1000 at most.
        newest: store time, group, origin, keys and offset id of the newest, 100 at most.
        sent_back: letters sent back by this run; None if that was not wanted.
    """

    rows: int
    found: int
    kinds: tuple[DeadLetterCounts, ...]
    newest: tuple[tuple[Any, ...], ...]
    lines: Points
    sent_back: int | None
    seconds: float
    is_interrupted: bool

    def report(self) -> Report:
        """The same figures as a report."""
        kinds = [
            (k.group, k.origin, k.reason, k.letters, k.retries, moment(k.first_ms),
             moment(k.last_ms))
            for k in self.kinds
        ]  # fmt: skip
        headings = ("group", "topic", "reason", "letters", "most retries", "first", "last")
        by_group: dict[str, int] = {}
        for one in self.kinds:
            by_group[one.group] = by_group.get(one.group, 0) + one.letters
        newest = [(moment(row[0]), *row[1:]) for row in self.newest]
        return Report(
            "Dead letters",
            {
                "letters": self.found,
                "sent back by this run": self.sent_back,
                "seconds": round(self.seconds, 3),
                "stopped before the end": self.is_interrupted,
            },
            (
                Table("Why and where from", headings, kinds),
                Bars("By group", "letters", list(by_group.items())[:20]),
                Lines("Given up over time", "letters", self.lines),
                Table("The newest", ("at", "group", "topic", "keys", "offset id"), newest),
            ),
        )


@dataclass(frozen=True, kw_only=True)
class DeadLetters(Job):
    """Reports dead letters of groups, and sends the chosen ones back."""

    groups: tuple[str, ...] = setting(
        "Consumer group; without it, all groups. May be repeated.",
        option="group",
        kind="words",
        default=(),
    )
    since_ms: int | None = setting(
        "Only letters given up at that time or later.", option="since", kind="time", default=None
    )
    until_ms: int | None = setting(
        "Only letters given up before that time.", option="until", kind="time", default=None
    )
    where: str | None = setting(
        "Only letters for which this SQL expression is true, over the columns of the source, "
        "consumer_group, origin and reason: `origin = 'orders' AND reconsume_times > 3`.",
        option="where",
        default=None,
    )
    ids: tuple[str, ...] = setting(
        "Only this letter, by its offset id. May be repeated.",
        option="id",
        kind="words",
        default=(),
    )
    reason_property: str | None = setting(
        "Property in which your consumers write why they give a message up.",
        option="reason",
        default=None,
    )
    send_back: str = setting(
        "Send the letters back: to their group alone, or to the topic they came from.",
        option="send-back",
        default="no",
        choices=("no", "group", "topic"),
    )
    rate: float | None = setting(
        "Most letters a second to send back.", option="rate", kind="number", default=None
    )
    slice_rows: int = setting(
        "Most letters read between two saves of the progress.",
        option="slice-rows",
        kind="whole",
        default=10_000,
        least=1,
    )
    state: str | None = setting(
        "Folder for the saved progress of sending back.", option="state", default=None
    )

    def run(self, session: SparkSession, watch: Watch = unwatched) -> Letters:
        """Reports, and sends back if `send_back` is not `no`.

        Raises:
            UsageError: the settings contradict each other, or a group takes no retries.
            SprocketError: reading or sending failed; the next run continues from there.
        """
        started = time.monotonic()
        start, end = offsets.span(
            self.servers, self._topics(), since_ms=self.since_ms, until_ms=self.until_ms
        )
        letters = self._letters(offsets.rows(session, self.source(), _COLUMNS, start, end))
        letters = letters.persist()
        try:
            found, kinds, newest, lines = _counted(letters)
        finally:
            letters.unpersist()
        watch(Progress(found, None, None))
        sent, is_whole = None, True
        if self.send_back != "no":
            sent, is_whole = self._sent_back(session, (start, end), watch)
        return Letters(
            rows=found if sent is None else sent,
            found=found,
            kinds=kinds,
            newest=newest,
            lines=lines,
            sent_back=sent,
            seconds=time.monotonic() - started,
            is_interrupted=not is_whole,
        )

    def _topics(self) -> list[str]:
        """The dead-letter topics that exist."""
        from sprocket.admin import topics

        existing = self.servers.ask(partial(topics.names, with_internal=True))
        if not self.groups:
            return [topic for topic in existing if is_dead_letter_topic(topic)]
        wanted = {dead_letter_topic(group) for group in self.groups}
        return sorted(wanted & set(existing))

    def _letters(self, frame: DataFrame) -> DataFrame:
        from pyspark.sql import functions as f

        properties = f.col("properties")
        reason = f.lit(None).cast("string")
        if self.reason_property is not None:
            reason = properties[self.reason_property]
        group = f.substring("topic", len(DEAD_LETTER_PREFIX) + 1, 255)
        origin = f.coalesce(
            properties[names.RETRY_TOPIC], properties["DLQ_ORIGIN_TOPIC"], f.col("topic")
        )
        named = (
            frame.withColumn("consumer_group", group)
            .withColumn("origin", origin)
            .withColumn("reason", f.coalesce(reason, f.lit("-")))
        )
        if self.ids:
            named = named.where(f.upper("offset_id").isin(*(one.upper() for one in self.ids)))
        return named if self.where is None else chosen(named, self.where)

    def _sent_back(
        self, session: SparkSession, span: tuple[offsets.Offsets, offsets.Offsets], watch: Watch
    ) -> tuple[int, bool]:
        if not (self.where or self.ids or self.groups):
            raise UsageError("say which letters go back: groups, a where, or ids")
        name = self.digest(
            "nameservers", "groups", "since_ms", "until_ms", "where", "ids", "send_back"
        )
        place = self.state or f"sprocket-state/deadletters-{name}"
        memory = SliceProgress(Folder(session, place), name)
        slices = Slices(memory, rows=self.slice_rows, rate=self.rate, watch=watch)
        if self.send_back == "group":
            for group in self._groups(span[1]):
                self.servers.ask(partial(returning.check, group=group))
        rows = partial(offsets.rows, session, self.source(), _WITH_BODY)
        unit = WorkUnit(0, *span, rows, QueueWitnesses(self.source()))
        is_whole = slices.run([unit], self._send)
        return slices.done, is_whole

    def _groups(self, queues: offsets.Offsets) -> list[str]:
        return sorted({queue.topic.removeprefix(DEAD_LETTER_PREFIX) for queue in queues})

    def _send(self, frame: DataFrame) -> int:
        letters = self._letters(frame)
        if self.send_back == "group":
            return returning.to_groups(letters, self.servers)
        return returning.to_topics(letters, self.servers.options())


# Only limited results come to the driver, because a dead-letter topic may hold millions of letters.
# When the kinds are not cut off, their sum is the total, which saves one more count of all letters.
def _counted(letters: DataFrame) -> tuple[int, Any, Any, Points]:
    from pyspark.sql import functions as f

    at = f.unix_millis("store_timestamp")
    kinds = (
        letters.groupBy("consumer_group", "origin", "reason")
        .agg(
            f.count(f.lit(1)).alias("letters"),
            f.max("reconsume_times"),
            f.min(at),
            f.max(at),
        )
        .orderBy(f.desc("letters"), "consumer_group", "origin", "reason")
        .limit(_KINDS_MAX)
        .collect()
    )
    newest = (
        letters.select(at.alias("at"), "consumer_group", "origin", "key", "offset_id")
        .orderBy(f.desc("at"), "offset_id")
        .limit(_LETTERS_MAX)
        .collect()
    )
    timed = letters.select("consumer_group", at.alias("at"))
    lines = over_time(timed, name="consumer_group", at="at", value=f.count(f.lit(1)))
    found = letters.count() if len(kinds) == _KINDS_MAX else sum(row["letters"] for row in kinds)
    return (
        found,
        tuple(DeadLetterCounts(*row) for row in kinds),
        tuple(tuple(row) for row in newest),
        lines.lines,
    )
