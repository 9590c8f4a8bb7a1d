"""Copies topics of one cluster to another, and maps offsets so that groups can move there.

Each source queue is written in order to one target queue, and a property of each message names its
origin. Spark's checkpoint has the offsets that are read. Before a micro-batch is written, the end
offsets of the target are saved; when a crash cut a micro-batch off, the next run leaves out the
messages of it that arrived behind them. A message can still arrive twice when a task sends it
again: a request of at most 256 messages whose reply was lost, or a task's part of a micro-batch
when Spark runs the task again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from sprocket.base.deadline import Deadline
from sprocket.base.errors import TopicNotFound, UsageError
from sprocket.message.queue import QueueId
from sprocket.message.topic import check_topic
from sprocket.spark.options.checkpoint import read_shape, shape_offsets
from sprocket.spark.pipelines.parts import offsets, translate
from sprocket.spark.pipelines.parts.batches import Batches
from sprocket.spark.pipelines.parts.folder import HIDDEN
from sprocket.spark.pipelines.parts.job import (
    TopicJob,
    batch_rows_setting,
    every_setting,
    follows_setting,
    setting,
    to_profile_setting,
)
from sprocket.spark.pipelines.parts.offsets import Offsets
from sprocket.spark.pipelines.parts.progress import Watch, unwatched
from sprocket.spark.pipelines.parts.report import Report, Table
from sprocket.spark.pipelines.parts.servers import AccessKeys, Servers
from sprocket.spark.pipelines.parts.streams import run_query, trigger
from sprocket.spark.pipelines.tables.opened import TableSettings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from sprocket.admin.caller import Caller
    from sprocket.remoting.profiles import Profile
    from sprocket.remoting.tls.settings import ClientTls

#: The property with the origin of a message: `orders@broker-a:3/17`.
MARK = "MIRRORED_FROM"
_COLUMNS = (
    "topic string, broker string, queue_id int, queue_offset bigint, key string, tag string, "
    "body binary, properties map<string,string>, flag int"
)
_BACK = (
    "topic string, broker string, queue_id int, queue_offset bigint, properties map<string,string>"
)
_INTENT = f"{HIDDEN}/intent.json"
_WAYS = f"{HIDDEN}/ways.json"
#: How long name servers may take to know a new topic, and the pause between two requests, s.
_MADE_S, _LOOK_S = 30.0, 0.05


@dataclass(frozen=True)
class Mirrored:
    """What a run did.

    Attributes:
        rows: messages that this run copied.
        total_rows: messages that all runs copied.
        groups: offsets of the groups at the source and at the target.
    """

    rows: int
    total_rows: int
    batches: int
    groups: tuple[translate.TranslatedOffset, ...]
    seconds: float
    is_interrupted: bool

    def report(self) -> Report:
        """The same figures as a report."""
        headings = ("group", "queue", "offset", "target queue", "target offset")
        rows = [(g.group, str(g.queue), g.offset, _name(g.target), g.moved_to) for g in self.groups]
        return Report(
            "Mirror",
            {
                "messages": self.rows,
                "by all runs": self.total_rows,
                "micro-batches": self.batches,
                "seconds": round(self.seconds, 3),
                "stopped before the end": self.is_interrupted,
            },
            (Table("Groups that followed", headings, rows),),
        )


@dataclass(frozen=True, kw_only=True)
class Mirror(TableSettings, TopicJob):
    """Copies topics of one cluster to another, in order, with a map of offsets."""

    to_nameservers: str | None = setting(
        "Name servers of the target; without it, those of its profile.",
        option="to-nameserver",
        default=None,
    )
    to_profile: Profile | None = to_profile_setting()  # noqa: RUF009 - a dataclass field
    folder: str = setting(
        "Folder of its own for the progress and the map of offsets.", option="state"
    )
    prefix: str = setting("Prefix of topic names at the target.", option="prefix", default="")
    groups: tuple[str, ...] = setting(
        "Consumer group whose offsets are translated to the target when a run ends. May be "
        "repeated.",
        option="group",
        kind="words",
        default=(),
    )
    follows: bool = follows_setting()
    every_s: float = every_setting(1.0)
    batch_rows: int = batch_rows_setting(200_000)
    again: bool = setting(
        "Copy messages that a mirror wrote to the source, too; otherwise they are left out, so "
        "that two clusters can mirror each other.",
        option="mirrored-too",
        kind="switch",
        default=False,
    )
    to_keys: AccessKeys | None = None
    to_tls: ClientTls | Literal[False] | None = None

    def run(self, session: SparkSession, watch: Watch = unwatched) -> Mirrored:
        """Copies the messages that came since the last run, then moves the groups' offsets.

        Raises:
            UsageError: the settings contradict each other, or the folder is another job's.
            SprocketError: reading or writing failed; the next run continues from there.
        """
        started = time.monotonic()
        target = self.target
        if target.nameservers == self.nameservers and not self.prefix:
            raise UsageError("a cluster into itself needs a prefix")
        batches = self.opened(session, self.folder, (), before=())
        crossing = _Crossing(self, session, batches)
        read = self.stream(session, _COLUMNS, batch_rows=self.batch_rows)
        writer = (
            read.writeStream.foreachBatch(crossing.write)
            .option("checkpointLocation", batches.checkpoint)
            .trigger(**trigger(follows=self.follows, every_s=self.every_s))
        )
        is_whole = run_query(writer, watch)
        followed: tuple[translate.TranslatedOffset, ...] = ()
        if self.groups and not batches.is_empty:
            follower = translate.GroupOffsetSync(self.servers, target, batches.read())
            followed = follower.move(self.groups)
        return Mirrored(
            rows=batches.totals.get("rows", 0),
            total_rows=batches.mark.totals.get("rows", 0),
            batches=batches.appended,
            groups=followed,
            seconds=time.monotonic() - started,
            is_interrupted=not is_whole,
        )

    @property
    def target(self) -> Servers:
        """The cluster that is written to; errors as `Servers.another`."""
        given = (self.to_keys, self.to_tls, self.to_profile)
        return self.servers.another(self.to_nameservers, *given)

    def check(self) -> None:
        """See `Job.check`."""
        _ = self.target
        super().check()

    def target_of(self, topic: str) -> str:
        """The topic's name at the target."""
        name = self.prefix + topic
        check_topic(name)
        return name


@dataclass
class _Intent:
    """The micro-batch about to be written, and the target's end offsets before it."""

    batch: int
    ends: Offsets = field(default_factory=dict)


class _Crossing:
    """Writes micro-batches to the target and saves the map of offsets."""

    def __init__(self, job: Mirror, session: SparkSession, batches: Batches) -> None:
        self._job = job
        self._session = session
        self._batches = batches
        saved: Mapping[str, Any] = batches.folder.read(_WAYS) or {"ways": []}
        #: Target queue of each source queue.
        self._target_queues = {QueueId(*row[:3]): QueueId(*row[3:]) for row in saved["ways"]}
        from pyspark.sql import functions as f

        self._keep = batches.append(lambda frame: frame, {"rows": f.sum("messages")})

    def write(self, frame: DataFrame, number: int) -> None:
        """Writes one micro-batch; `foreachBatch` calls it."""
        if number <= self._batches.mark.last:
            return
        frame = frame if self._job.again else self._from_here(frame)
        frame = frame.persist()
        try:
            self._write(frame, number)
        finally:
            frame.unpersist()

    # Spark runs a micro-batch again when a crash cut it off, and part of it may be at the target
    # already. The saved end offsets limit the search for that part to what was written since, so
    # its cost does not grow with the topic; the join by origin works whatever order tasks had.
    def _write(self, frame: DataFrame, number: int) -> None:
        found = frame.select("topic", "broker", "queue_id").distinct().collect()
        queues = sorted(QueueId(*row) for row in found)
        self._assign_targets(queues)
        targets = sorted({self._target_queues[queue].topic for queue in queues})
        intent, is_again = self._intent(number, targets)
        missing = frame
        if is_again:
            there = self._arrived(targets, intent.ends).select(translate.ORIGIN)
            missing = frame.join(there, offsets.origin() == there[translate.ORIGIN], "left_anti")
        self._send(missing)
        segments = translate.segments(self._arrived(targets, intent.ends))
        self._keep(segments, number)

    def _from_here(self, frame: DataFrame) -> DataFrame:
        from pyspark.sql import functions as f

        return frame.where(f.col("properties")[MARK].isNull())

    def _send(self, frame: DataFrame) -> None:
        """Sends rows in the order of each source queue: one task has all rows of a queue."""
        from pyspark.sql import functions as f

        targets = self._session.createDataFrame(
            [(*queue, *target) for queue, target in self._target_queues.items()],
            "topic string, broker string, queue_id int, "
            "to_topic string, to_broker string, to_queue int",
        )
        places = ["topic", "broker", "queue_id"]
        (
            frame.join(f.broadcast(targets), places)
            .repartition(*(f.col(name) for name in places))
            .sortWithinPartitions(*places, "queue_offset")
            .withColumn("properties", offsets.marked(MARK, offsets.origin()))
            .select(
                f.col("to_topic").alias("topic"),
                f.col("to_broker").alias("broker"),
                f.col("to_queue").alias("queue_id"),
                "key", "tag", "body", "properties", "flag",
            )
            .write.format("rocketmq")
            .mode("append")
            .options(**self._job.target.options())
            .save()
        )  # fmt: skip

    def _arrived(self, targets: list[str], ends: Offsets) -> DataFrame:
        """The mirrored messages at the target behind the offsets `ends`, with their origins."""
        now = offsets.ends(self._job.target, targets)
        options = self._job.target.options()
        start = {queue: ends.get(queue, 0) for queue in now}
        return translate.arrivals(offsets.rows(self._session, options, _BACK, start, now), MARK)

    def _intent(self, number: int, targets: list[str]) -> tuple[_Intent, bool]:
        """What was saved before this batch was first written; whether that was an earlier try."""
        folder = self._batches.folder
        saved: Mapping[str, Any] = folder.read(_INTENT) or {}
        if saved.get("batch") == number:
            return _Intent(number, read_shape(saved["ends"])), True
        made = _Intent(number, offsets.ends(self._job.target, targets))
        folder.replace(_INTENT, {"batch": number, "ends": shape_offsets(made.ends)})
        return made, False

    def _assign_targets(self, queues: list[QueueId]) -> None:
        """Chooses a target for each queue without one. It never changes: order depends on it."""
        new = [queue for queue in queues if queue not in self._target_queues]
        for queue in new:
            targets = self._targets(queue.topic)
            taken = sum(one.topic == targets[0].topic for one in self._target_queues.values())
            self._target_queues[queue] = targets[taken % len(targets)]
        if new:
            rows = [[*queue, *target] for queue, target in self._target_queues.items()]
            self._batches.folder.replace(_WAYS, {"ways": rows})

    def _targets(self, topic: str) -> list[QueueId]:
        """The target's queues for a source topic; creates the target topic if it is missing."""
        name = self._job.target_of(topic)
        count = 1 + max(queue.number for queue in offsets.ends(self._job.servers, [topic]))
        return self._job.target.ask(lambda caller: _writable(caller, name, count))


async def _writable(caller: Caller, topic: str, queues: int) -> list[QueueId]:
    """A topic's writable queues; creates the topic with `queues` of them if it is missing."""
    from sprocket.admin import topic_changes

    try:
        return await offsets.writable(caller, topic)
    except TopicNotFound:
        wanted = topic_changes.TopicSettings(queues, queues)
        await topic_changes.create(caller, topic, wanted=wanted)
    deadline = Deadline.after_ms(_MADE_S * 1000)
    while True:
        try:
            return await offsets.writable(caller, topic)
        except TopicNotFound:
            if not deadline.left():
                raise
        await asyncio.sleep(_LOOK_S)


def _name(queue: QueueId | None) -> str | None:
    return None if queue is None else str(queue)
