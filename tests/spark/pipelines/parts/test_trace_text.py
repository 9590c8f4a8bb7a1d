from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed: pip install 'sprocketmq[spark]'")

from sprocket.spark.pipelines.parts import trace_text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

#: As Java's clients of 4.9 and 5.x write them.
PUB = (
    "Pub\x011700000000000\x01DefaultRegion\x01shop\x01orders\x017F0000010001\x01paid\x01o-1 o-2\x01"
    "10.0.0.1:10911\x0110\x013\x010\x017F00000100002A9F0000000000000A1C\x01true\x02"
)
OLD_PUB = (
    "Pub\x011700000000001\x01null\x01shop\x01orders\x017F0000010002\x01\x01null\x01"
    "10.0.0.1:10911\x0110\x0130\x010\x01false\x02"
)
BATCH = PUB.replace("7F0000010001", "7F0000010003,7F0000010004")
BEFORE = "SubBefore\x011700000000020\x01null\x01billing\x01AC11\x017F0000010001\x012\x01o-1 o-2\x02"
AFTER = (
    "SubAfter\x01AC11\x017F0000010001\x015\x01true\x01o-1 o-2\x010\x011700000000025\x01billing\x02"
)
CLOUD_AFTER = "SubAfter\x01AC12\x017F0000010002\x016\x01false\x01\x011\x01\x02"
OLD_AFTER = "SubAfter\x01AC13\x017F0000010005\x016\x01false\x01k\x02"
NONSENSE = ("", "\x02\x02", "Pub", "Pub\x01x\x01y\x02", "Unknown\x011\x02", "\xff\x00")


def events(spark: SparkSession, *bodies: str | bytes) -> list[dict[str, Any]]:
    raw = [(one if isinstance(one, bytes) else one.encode(), None) for one in bodies]
    frame = spark.createDataFrame(raw, "body binary, store_timestamp timestamp")
    return [row.asDict() for row in trace_text.events(frame).collect()]


def test_events_of_all_kinds_and_ages_become_rows(spark: SparkSession) -> None:
    found = events(spark, PUB + OLD_PUB, BATCH, BEFORE, AFTER + CLOUD_AFTER + OLD_AFTER)
    pub, old, first, second, before, after, cloud, older = found
    assert (pub["kind"], pub["at_ms"], pub["group"]) == ("Pub", 1_700_000_000_000, "shop")
    assert (pub["topic"], pub["message_id"], pub["tag"]) == ("orders", "7F0000010001", "paid")
    assert (pub["cost_ms"], pub["is_ok"], pub["keys"]) == (3, True, "o-1 o-2")
    assert (old["is_ok"], old["cost_ms"], old["tag"], old["keys"]) == (False, 30, None, None)
    assert (first["message_id"], second["message_id"]) == ("7F0000010003", "7F0000010004")
    assert (before["request_id"], before["retries"], before["group"]) == ("AC11", 2, "billing")
    assert (after["cost_ms"], after["is_ok"], after["code"]) == (5, True, 0)
    assert (after["at_ms"], after["group"]) == (1_700_000_000_025, "billing")
    assert (cloud["code"], cloud["at_ms"], cloud["is_ok"]) == (1, None, False)
    assert (older["message_id"], older["cost_ms"]) == ("7F0000010005", 6)


def test_what_is_no_event_is_left_out(spark: SparkSession) -> None:
    assert events(spark, *NONSENSE, b"\xff\xfe\x01") == []
