from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed: pip install 'sprocketmq[spark]'")

from sprocket import Message
from sprocket.client.blocking import Producer
from sprocket.spark.pipelines import Trace
from tests.cli.parts import eventually

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
AT = 1_700_000_000_000


def pub(number: int, *, is_ok: bool = True) -> str:
    fields = ("Pub", AT + number, "r", "shop", "orders", f"id{number}", "t", "k", "h:1", 10, 3, 0,
              "off", str(is_ok).lower())  # fmt: skip
    return "\x01".join(map(str, fields)) + "\x02"


def consumed(number: int, latency: int, *, is_ok: bool = True, retries: int = 0) -> str:
    request = f"r{number}-{retries}"
    before = (
        "SubBefore",
        AT + number + latency,
        "r",
        "billing",
        request,
        f"id{number}",
        retries,
        "",
    )
    after = ("SubAfter", request, f"id{number}", 7, str(is_ok).lower(), "", 0, AT, "billing")
    return "".join("\x01".join(map(str, fields)) + "\x02" for fields in (before, after))


def test_latency_is_from_the_send_to_each_consumption(spark: SparkSession, shop: str) -> None:
    with Producer("tracer", nameservers=shop) as producer:
        for number in range(10):
            text = pub(number, is_ok=number != 9)
            if number < 8:
                text += consumed(number, 10 * (number + 1), is_ok=number != 3)
            producer.send(Message("traces", text.encode()))
        late = consumed(3, 5_000, retries=1) + consumed(8, -4) + consumed(99, 1)
        producer.send(Message("traces", late.encode()))
    found = Trace(nameservers=shop, topic="traces").run(spark)
    known, unknown = sorted(found.ways, key=lambda one: one.topic, reverse=True)
    assert known[:5] == ("orders", "billing", 10, 1, 1)
    assert (known.p50, known.p90, known.longest, known.work) == (50, 5_000, 5_000, 7)
    assert (unknown.topic, unknown.consumed, unknown.p50) == ("-", 1, None)
    (sending,) = found.sends
    assert sending[:4] == ("orders", 10, 1, 1)
    assert (sending.p50, found.backwards, found.rows) == (3, 1, 10 + 2 * 11)
    bars = dict(found.histogram)
    assert (bars["below 20 ms"], bars["below 50 ms"], bars["below 100 ms"]) == (1, 3, 4)
    assert bars["below 10000 ms"] == 1
    assert found.lines["billing"]
    assert "p99 ms" in found.report().html()


@pytest.mark.java
@pytest.mark.process
@pytest.mark.timeout(900)
def test_the_trace_of_javas_clients_is_read(
    spark: SparkSession, shop: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    from pyspark.errors import AnalysisException

    from tests.compat.javaland import JavaDriver, require_java

    require_java()
    work = tmp_path_factory.mktemp("trace")
    with JavaDriver("5.3.3", work=work) as driver:
        traced = {"enableTrace": True}
        driver.call("producer.start", group="j", namesrv=shop, set=traced)
        driver.call("consumer.start", group="jc", namesrv=shop, topic="from-java", set=traced)
        sends = [{"text": f"order {number}"} for number in range(5)]
        driver.call("producer.sendMany", topic="from-java", messages=sends)
        job = Trace(nameservers=shop)

        def consumed_all() -> bool:
            try:
                found = job.run(spark)
            except AnalysisException:  # nothing has been traced yet: there is no topic
                return False
            return any(way[:3] == ("from-java", "jc", 5) for way in found.ways)

        eventually(consumed_all)
    found = job.run(spark)
    way = next(one for one in found.ways if one.group == "jc")
    assert (way.failed, way.retries) == (0, 0)
    assert way.longest is not None
    assert 0 <= way.longest < 600_000
    sending = next(one for one in found.sends if one.topic == "from-java")
    assert sending[:4] == ("from-java", 5, 0, 0)
