"""Sends dead letters back to the group that gave them up, or to the topic they came from.

To groups, the tasks do what `sprocket deadletters resend` does, many letters at a time. To topics,
the letters go through the sink. Both keep everything that the sender set.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

from sprocket.message.message import StoredMessage
from sprocket.message.offsets import LogOffset, QueueOffset
from sprocket.message.queue import QueueId
from sprocket.message.topic import DEAD_LETTER_PREFIX

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from sprocket.admin.caller import Caller
    from sprocket.spark.pipelines.parts.servers import Servers

#: Letters that a task sends at the same time.
_AT_ONCE = 32


async def check(caller: Caller, *, group: str) -> None:
    """Raises UsageError if a group consumes in order, and so takes no retries."""
    from sprocket.admin.resend import check_takes_retries

    await check_takes_retries(caller, group)


def to_topics(letters: DataFrame, options: dict[str, str]) -> int:
    """Sends letters to the topics in their column `origin`; returns how many, when acknowledged."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as f

    seen = Observation()
    (
        letters.select(f.col("origin").alias("topic"), "key", "tag", "body", "properties", "flag")
        .observe(seen, f.count(f.lit(1)).alias("rows"))
        .write.format("rocketmq")
        .mode("append")
        .options(**options)
        .save()
    )
    return int(seen.get["rows"])


def to_groups(letters: DataFrame, servers: Servers) -> int:
    """Sends letters back to their groups; returns how many, when acknowledged."""
    columns = ("topic", "broker", "queue_id", "queue_offset", "body", "properties",
               "born_timestamp", "store_timestamp", "reconsume_times", "flag")  # fmt: skip

    def give_back(rows: Iterable[Any]) -> list[int]:
        return [asyncio.run(servers.answer(partial(_give_back, rows=rows)))]

    return int(letters.select(*columns).rdd.mapPartitions(give_back).sum())


async def _give_back(caller: Caller, *, rows: Iterable[Any]) -> int:
    from sprocket.admin import resend

    count = 0
    left = iter(rows)
    while some := list(islice(left, _AT_ONCE)):
        groups = [row["topic"].removeprefix(DEAD_LETTER_PREFIX) for row in some]
        sends = [
            resend.put_back(caller, letter(row), group)
            for row, group in zip(some, groups, strict=True)
        ]
        await asyncio.gather(*sends)
        count += len(some)
    return count


def letter(row: Any) -> StoredMessage:
    """The message in a row of the source; fields that sending back does not need are empty."""
    return StoredMessage(
        queue=QueueId(row["topic"], row["broker"], row["queue_id"]),
        queue_offset=QueueOffset(row["queue_offset"]),
        log_offset=LogOffset(0),
        body=bytes(row["body"]),
        as_read=dict(row["properties"] or ()),
        flag=row["flag"] or 0,
        sys_flag=0,
        born_ms=int(row["born_timestamp"].timestamp() * 1000),
        born_host="",
        stored_ms=int(row["store_timestamp"].timestamp() * 1000),
        store_host="",
        reconsume_times=row["reconsume_times"] or 0,
        prepared_offset=0,
        record_bytes=0,
        body_crc=0,
    )
