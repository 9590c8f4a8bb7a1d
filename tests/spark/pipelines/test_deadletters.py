from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed: pip install 'sprocketmq[spark]'")

from sprocket import Later, Message
from sprocket.base.errors import UsageError
from sprocket.client.blocking import Producer, PushConsumer
from sprocket.message.message import StoredMessage
from sprocket.spark.pipelines import DeadLetters
from tests.cli.parts import eventually
from tests.spark.pipelines.shop import topic_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def consuming(shop: str, listen: Callable[[StoredMessage], Later | None]) -> PushConsumer:
    consumer = PushConsumer("weary", nameservers=shop, start="first")
    consumer.subscribe("lost", listener=listen)
    return consumer


@pytest.fixture(scope="module")
def lost(shop: str) -> str:
    """The cluster, with six letters that the group `weary` gave up."""
    seen: set[str] = set()
    lock = threading.Lock()

    def give_up(message: StoredMessage) -> Later:
        with lock:
            seen.add(message.keys[0])
        return Later(-1)

    with Producer("p", nameservers=shop) as producer:
        for number in range(6):
            why = {"why": "no <b>stock</b>" if number % 2 else "no money"}
            body = b"letter %d" % number
            producer.send(Message("lost", body, keys=[f"l-{number}"], properties=why, flag=number))
    with consuming(shop, give_up):
        eventually(lambda: len(seen) == 6)
        job = DeadLetters(nameservers=shop, groups=("weary",))
        eventually(lambda: sum(_letters(job).values()) == 6)
    return shop


def _letters(job: DeadLetters) -> dict[object, int]:
    from sprocket.spark.pipelines.parts import offsets

    topics = job._topics()
    return dict(offsets.ends(job.servers, topics)) if topics else {}


def test_letters_are_counted_by_group_topic_and_reason(spark: SparkSession, lost: str) -> None:
    job = DeadLetters(nameservers=lost, reason_property="why")
    found = job.run(spark)
    assert (found.found, found.sent_back) == (6, None)
    assert [one[:5] for one in found.kinds] == [
        ("weary", "lost", "no <b>stock</b>", 3, found.kinds[0].retries),
        ("weary", "lost", "no money", 3, found.kinds[1].retries),
    ]
    assert all(one.first_ms <= one.last_ms for one in found.kinds)
    assert {row[3] for row in found.newest} == {f"l-{number}" for number in range(6)}
    assert sum(count for _, count in found.lines["weary"]) == 6
    page = found.report().html()
    assert "no &lt;b&gt;stock&lt;/b&gt;" in page
    assert DeadLetters(nameservers=lost, groups=("nobody",)).run(spark).found == 0


def test_chosen_letters_go_back_to_their_group_once(spark: SparkSession, lost: str) -> None:
    got: list[StoredMessage] = []
    job = DeadLetters(
        nameservers=lost,
        groups=("weary",),
        where="reason = 'no money'",
        reason_property="why",
        send_back="group",
        slice_rows=4,
    )
    with consuming(lost, lambda message: got.append(message)):
        done = job.run(spark)
        assert (done.found, done.sent_back) == (3, 3)
        assert job.run(spark).sent_back == 0
        eventually(lambda: len(got) >= 3)
    assert sorted(one.body for one in got) == [b"letter 0", b"letter 2", b"letter 4"]
    assert {one.topic for one in got} == {"lost"}
    assert {one.properties["why"] for one in got} == {"no money"}


def test_a_letter_goes_back_to_its_topic_by_its_id(spark: SparkSession, lost: str) -> None:
    chosen = DeadLetters(nameservers=lost, groups=("weary",)).run(spark).newest[0]
    key, offset_id = chosen[3], chosen[4]
    before = topic_rows(spark, lost, "lost", "key")
    job = DeadLetters(nameservers=lost, ids=(offset_id,), send_back="topic")
    assert job.run(spark).sent_back == 1
    assert topic_rows(spark, lost, "lost", "key") == sorted([*before, (key,)])


def test_all_letters_of_all_groups_are_never_sent_back_by_accident(
    spark: SparkSession, lost: str
) -> None:
    with pytest.raises(UsageError, match="say which letters go back"):
        DeadLetters(nameservers=lost, send_back="topic").run(spark)
    with pytest.raises(UsageError, match="cannot choose rows"):
        DeadLetters(nameservers=lost, where="nonsense >").run(spark)
