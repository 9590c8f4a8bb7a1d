from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sprocket.demo.events import DemoStep, Event, Task
from sprocket.demo.orders import STATUSES, orders
from sprocket.demo.report import report
from sprocket.message.properties import KEYS, TAGS, encode
from sprocket.message.queue import QueueId
from sprocket.testing.entropy import SeededEntropy
from tests.spark.support import FakeBroker, Shelf, record, serving

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_the_topic_is_written_as_parquet_and_added_up(spark: SparkSession, tmp_path: Path) -> None:
    made = list(orders(100, run="r", entropy=SeededEntropy(3)))
    shelf = Shelf(
        [
            record(
                offset,
                body=one.body,
                properties=encode(
                    {KEYS: one.keys[0], TAGS: one.tag or "", **one.properties}
                ).encode(),
            )
            for offset, one in enumerate(made)
        ]
    )
    said: list[Event] = []
    folder = tmp_path / "orders"
    with serving(FakeBroker({QueueId("orders", "broker-a", 0): shelf})) as broker:
        found = report(spark, Task(broker.address, "orders", str(folder)), said.append)
    assert (found.messages, found.others) == (100, 1)
    assert found.files == len(list(folder.glob("region=*/status=*/*.parquet")))
    assert found.file_bytes > 0
    for status in STATUSES:
        counted = sum(one.orders[status] for one in found.regions)
        assert counted == sum(one.tag == status for one in made)
    assert [one.region for one in found.regions] == sorted({m.properties["region"] for m in made})
    assert all(one.amount > 0 for one in found.regions)
    assert len(said) == 2
    assert all(isinstance(one, DemoStep) for one in said)
