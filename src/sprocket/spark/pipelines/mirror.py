"""Topics of one cluster kept in another, with where each message went, so that groups can follow.

Each source queue goes in order into one queue of the target, and a property of each message says
where it came from. Spark's checkpoint says how far reading is; before a micro-batch is written the
target's ends are noted, so that the one that a crash cut off is written without what had arrived
of it. What can still arrive twice is what a task sends again: a request of at most 256 messages
whose answer got lost, or a task's part of a micro-batch if Spark runs the task again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sprocket.base.deadline import Deadline
from sprocket.base.errors import TopicNotFound, UsageError
from sprocket.message.queue import QueueId
from sprocket.message.topic import check_topic
from sprocket.spark.options.positions import read_shape, shape_offsets
from sprocket.spark.pipelines.parts import offsets, translate
from sprocket.spark.pipelines.parts.batches import Batches
from sprocket.spark.pipelines.parts.folder import HIDDEN
from sprocket.spark.pipelines.parts.job import (
    TopicJob,
    batch_rows_setting,
    every_setting,
    follows_setting,
    setting,
)
from sprocket.spark.pipelines.parts.offsets import Offsets
from sprocket.spark.pipelines.parts.progress import Watch, unwatched
from sprocket.spark.pipelines.parts.report import Report, Table
from sprocket.spark.pipelines.parts.servers import Keys, Servers
from sprocket.spark.pipelines.parts.streams import follow, trigger

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from sprocket.admin.caller import Caller

#: The property that says where a message came from: `orders@broker-a:3/17`.
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
#: How long name servers may take to know a new topic.
_MADE_S, _LOOK_S = 30.0, 0.05


@dataclass(frozen=True)
class Mirrored:
    """What a run did.

    Attributes:
        rows: messages that it brought over.
        total_rows: by all runs.
        groups: group, source queue, its offset there, target queue, its offset there now; None
            where nothing of that queue has been mirrored.
    """

    rows: int
    total_rows: int
    batches: int
    groups: tuple[translate.Followed, ...]
    seconds: float
    is_interrupted: bool

    def report(self) -> Report:
        """The same as a page."""
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
class Mirror(TopicJob):
    """Keeps topics of one cluster in another, in order, with offsets mapped."""

    to_nameservers: str = setting("Name servers of the target.", option="to-nameserver")
    folder: str = setting(
        "Folder of its own: how far it is, and which offset became which.", option="state"
    )
    prefix: str = setting(
        "What names of topics begin with at the target.", option="prefix", default=""
    )
    groups: tuple[str, ...] = setting(
        "Consumer group whose offsets are translated to the target when a run ends. May be given "
        "again.",
        option="group",
        kind="words",
        default=(),
    )
    follows: bool = follows_setting()
    every_s: float = every_setting(1.0)
    batch_rows: int = batch_rows_setting(200_000)
    again: bool = setting(
        "Also what a mirror brought to the source; else it is left, so that two clusters can "
        "mirror each other.",
        option="mirrored-too",
        kind="switch",
        default=False,
    )
    to_keys: Keys | None = None

    def run(self, session: SparkSession, watch: Watch = unwatched) -> Mirrored:
        """Brings over what has come since the last run, then lets groups follow.

        Raises:
            UsageError: what is asked for makes no sense, or the folder is not this mirror's.
            SprocketError: reading or writing failed; the next run goes on from there.
        """
        started = time.monotonic()
        if self.to_nameservers == self.nameservers and not self.prefix:
            raise UsageError("a cluster into itself needs a prefix")
        batches = Batches(session, self.folder, by=())
        batches.check()
        crossing = _Crossing(self, session, batches)
        options = {"startingOffsets": "earliest", **self.reading()}
        options["maxOffsetsPerTrigger"] = str(max(1, self.batch_rows))
        read = session.readStream.format("rocketmq").schema(_COLUMNS).options(**options).load()
        writer = (
            read.writeStream.foreachBatch(crossing.write)
            .option("checkpointLocation", batches.checkpoint)
            .trigger(**trigger(follows=self.follows, every_s=self.every_s))
        )
        is_whole = follow(writer, watch)
        followed: tuple[translate.Followed, ...] = ()
        if self.groups and not batches.is_empty:
            follower = translate.Follower(self.servers, self.target, batches.read())
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
        """The other cluster."""
        return Servers(self.to_nameservers, self.to_keys or self.keys)

    def target_of(self, topic: str) -> str:
        """The topic's name at the target."""
        name = self.prefix + topic
        check_topic(name)
        return name


@dataclass
class _Intent:
    """A micro-batch about to be written, and where the target ended before."""

    batch: int
    ends: Offsets = field(default_factory=dict)


class _Crossing:
    """Writes micro-batches to the target and keeps what became of each offset."""

    def __init__(self, job: Mirror, session: SparkSession, batches: Batches) -> None:
        self._job = job
        self._session = session
        self._batches = batches
        #: Target queue of each source queue.
        told: Mapping[str, Any] = batches.folder.read(_WAYS) or {"ways": []}
        self._ways = {QueueId(*way[:3]): QueueId(*way[3:]) for way in told["ways"]}
        from pyspark.sql import functions as f

        self._keep = batches.append(lambda frame: frame, {"rows": f.sum("messages")})

    def write(self, frame: DataFrame, number: int) -> None:
        """One micro-batch; what foreachBatch calls."""
        if number <= self._batches.mark.last:
            return
        frame = frame if self._job.again else self._from_here(frame)
        frame = frame.persist()
        try:
            self._write(frame, number)
        finally:
            frame.unpersist()

    def _write(self, frame: DataFrame, number: int) -> None:
        found = frame.select("topic", "broker", "queue_id").distinct().collect()
        queues = sorted(QueueId(*row) for row in found)
        self._know(queues)
        targets = sorted({self._ways[queue].topic for queue in queues})
        intent, is_again = self._intent(number, targets)
        rest = frame
        if is_again:
            there = self._arrived(targets, intent.ends).select(translate.ORIGIN)
            rest = frame.join(there, offsets.origin() == there[translate.ORIGIN], "left_anti")
        self._send(rest)
        segments = translate.segments(self._arrived(targets, intent.ends))
        self._keep(segments, number)

    def _from_here(self, frame: DataFrame) -> DataFrame:
        from pyspark.sql import functions as f

        return frame.where(f.col("properties")[MARK].isNull())

    def _send(self, frame: DataFrame) -> None:
        """In the order of each queue: its rows are one task's."""
        from pyspark.sql import functions as f

        ways = self._session.createDataFrame(
            [(*queue, *way) for queue, way in self._ways.items()],
            "topic string, broker string, queue_id int, "
            "to_topic string, to_broker string, to_queue int",
        )
        places = ["topic", "broker", "queue_id"]
        (
            frame.join(f.broadcast(ways), places)
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
        """What a mirror brought to the target since it ended at `ends`, with its origin."""
        now = offsets.ends(self._job.target, targets)
        options = self._job.target.options()
        start = {queue: ends.get(queue, 0) for queue in now}
        return translate.arrivals(offsets.rows(self._session, options, _BACK, start, now), MARK)

    def _intent(self, number: int, targets: list[str]) -> tuple[_Intent, bool]:
        """The note made before this batch was first written; and whether that was earlier."""
        folder = self._batches.folder
        told: Mapping[str, Any] = folder.read(_INTENT) or {}
        if told.get("batch") == number:
            return _Intent(number, read_shape(told["ends"])), True
        made = _Intent(number, offsets.ends(self._job.target, targets))
        folder.replace(_INTENT, {"batch": number, "ends": shape_offsets(made.ends)})
        return made, False

    def _know(self, queues: list[QueueId]) -> None:
        """Finds a target for each queue that has none: for good, since order hangs on it."""
        new = [queue for queue in queues if queue not in self._ways]
        for queue in new:
            targets = self._targets(queue.topic)
            taken = sum(way.topic == targets[0].topic for way in self._ways.values())
            self._ways[queue] = targets[taken % len(targets)]
        if new:
            ways = [[*queue, *way] for queue, way in self._ways.items()]
            self._batches.folder.replace(_WAYS, {"ways": ways})

    def _targets(self, topic: str) -> list[QueueId]:
        """The target's queues for a topic, which is made if it is not there."""
        name = self._job.target_of(topic)
        count = 1 + max(queue.number for queue in offsets.ends(self._job.servers, [topic]))
        return self._job.target.ask(lambda caller: _writable(caller, name, count))


async def _writable(caller: Caller, topic: str, queues: int) -> list[QueueId]:
    """A topic's queues that take messages; a topic that is not there is made with so many."""
    from sprocket.admin import topics

    try:
        return await offsets.writable(caller, topic)
    except TopicNotFound:
        await topics.create(caller, topic, queues=queues)
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
