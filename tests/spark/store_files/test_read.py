from __future__ import annotations

import datetime
import hashlib
import struct
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed: pip install 'sprocketmq[spark]'")

from sprocket.base.errors import ConfigError, UsageError
from sprocket.message.batch import BatchedMessage, encode
from sprocket.message.compression import Compression, compress
from sprocket.message.hashing import java_hash
from sprocket.message.inner_batch import WRAPPED
from sprocket.spark.options.loss import ReadFailed
from sprocket.spark.options.options import StoreOptions, StreamOptions, read_options
from sprocket.spark.store_files import scan
from sprocket.spark.store_files.read import StoreReader
from tests.spark.stores import ALL, Store, golden_store, log_offsets, manifest, rows
from tests.spark.support import BORN_MS


@pytest.fixture(scope="module")
def java_stores(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("java")
    for name in ("clean", "unclean"):
        golden_store(name, folder)
    return folder


def wanted_of(message: dict[str, Any]) -> tuple[Any, ...]:
    properties = {k: v for k, v in message["properties"].items() if k not in ("MIN_OFFSET",)}
    return (
        message["queueOffset"], message["logOffset"], message["storeSize"], message["sysFlag"] & ~1,
        message["flag"], message["bornTimestamp"], message["storeTimestamp"], message["bornHost"],
        message["storeHost"], message["reconsumeTimes"], message["preparedTransactionOffset"],
        message["offsetMsgId"], message["bodySha256"], properties,
    )  # fmt: skip


def found_of(row: dict[str, Any]) -> tuple[Any, ...]:
    return (
        row["queue_offset"], row["log_offset"], row["record_bytes"],
        # Java's client takes the bit away when it has opened a body.
        row["sys_flag"] & ~1, row["flag"],
        ms(row["born_timestamp"]), ms(row["store_timestamp"]), row["born_host"],
        row["store_host"], row["reconsume_times"], row["prepared_offset"], row["offset_id"],
        hashlib.sha256(row["body"]).hexdigest(), dict(row["properties"]),
    )  # fmt: skip


def ms(stamp: datetime.datetime) -> int:
    return round(stamp.timestamp() * 1000)


@pytest.mark.parametrize(
    ("store", "stored"),
    [("clean", "clean.stored"), ("unclean", "unclean.stored")],
)
def test_javas_stores_are_read_as_javas_client_read_them(
    java_stores: Path, store: str, stored: str
) -> None:
    topics = manifest(stored)
    found = rows(java_stores / store, subscribe=",".join(topics))
    by_queue: dict[tuple[str, int], list[tuple[Any, ...]]] = {}
    for row in found:
        by_queue.setdefault((row["topic"], row["queue_id"]), []).append(found_of(row))
    for topic, queues in topics.items():
        for number, queue in queues.items():
            wanted = [wanted_of(message) for message in queue["messages"]]
            some = by_queue.get((topic, int(number)), [])
            # The log may still have what the queue begins after.
            assert [one for one in some if one[0] >= queue["min"]] == wanted, (topic, number)


def test_a_store_as_a_whole_is_what_users_sent_deleted_topics_included(java_stores: Path) -> None:
    found = rows(java_stores / "clean")
    topics = {row["topic"] for row in found}
    assert {"StPlain", "StBatch", "StTx", "StDeleted"} <= topics
    assert not any(topic.startswith(("%", "rmq_sys_", "RMQ_SYS_")) for topic in topics)
    assert sum(row["topic"] == "StDeleted" for row in found) == 20
    assert log_offsets(found) == sorted(log_offsets(found))
    again = rows(java_stores / "clean", subscribe="StDeleted")
    assert log_offsets(again) == log_offsets(r for r in found if r["topic"] == "StDeleted")


def test_topics_of_rocketmq_come_when_they_are_asked_for(java_stores: Path) -> None:
    found = rows(java_stores / "clean", subscribePattern="%(RETRY|DLQ)%.*")
    assert {row["topic"] for row in found} == {"%RETRY%CG_store", "%DLQ%CG_store"}
    half = rows(java_stores / "clean", subscribe="RMQ_SYS_TRANS_HALF_TOPIC")
    assert len(half) >= 9


def filled(tmp_path: Path, count: int = 60) -> Store:
    store = Store(tmp_path / "store", file_bytes=2048)
    for number in range(count):
        topic = "orders" if number % 3 else "returns"
        tag = "paid" if number % 2 else "new"
        store.add(
            topic,
            number % 2,
            body=b"body %d" % number,
            properties=f"TAGS\x01{tag}\x02amount\x01{number}\x02".encode(),
            tag_code=java_hash(tag),
            stored_ms=BORN_MS + number * 60_000,
        )
    return store


@pytest.mark.parametrize("tasks", ["1", "5", "40"])
def test_every_record_is_one_row_however_the_work_is_cut(tmp_path: Path, tasks: str) -> None:
    store = filled(tmp_path)
    root = store.save(spare_files=1)
    assert len(list((root / "commitlog").iterdir())) > 3
    found = rows(root, minPartitions=tasks)
    assert log_offsets(found) == [at for at, _ in store.places]
    assert found[0]["broker"] is None
    by_queues = rows(root, minPartitions=tasks, subscribe="orders", storeBroker="b-1")
    assert log_offsets(by_queues) == log_offsets(r for r in found if r["topic"] == "orders")
    assert {row["broker"] for row in by_queues} == {"b-1"}


@pytest.mark.parametrize("has_queues", [True, False])
@pytest.mark.parametrize("run_bytes", [1, 1000])
def test_a_batch_holds_so_many_bytes_of_records_at_most(
    tmp_path: Path, has_queues: bool, run_bytes: int
) -> None:
    store = filled(tmp_path)
    root = store.save(has_queues=has_queues)
    options = read_options({"store": str(root), "subscribe": "orders"}, StoreOptions)
    reader = StoreReader(options, ALL)
    with mock.patch.object(scan, "_RUN_BYTES", run_bytes):
        batches = [batch for one in reader.partitions() for batch in reader.read(one)]
    sizes = [batch["record_bytes"].to_pylist() for batch in batches]
    # A run ends behind so many bytes, or with a record that has more alone.
    assert all(len(each) == 1 or sum(each[:-1]) <= run_bytes for each in sizes)
    assert sum(map(len, sizes)) == sum(
        len(entries) for (topic, _), entries in store.entries.items() if topic == "orders"
    )


@pytest.mark.parametrize("has_queues", [True, False])
def test_messages_are_chosen_by_topic_tag_condition_and_time(
    tmp_path: Path, has_queues: bool
) -> None:
    root = filled(tmp_path).save(has_queues=has_queues)

    def bodies(**given: str) -> set[int]:
        return {int(row["body"].split()[1]) for row in rows(root, **given)}

    assert bodies(subscribe="orders") == {n for n in range(60) if n % 3}
    assert bodies(subscribe="orders,returns", tags="paid") == set(range(1, 60, 2))
    assert bodies(subscribePattern="ret.*", tags="paid || other") == set(range(3, 60, 6))
    assert bodies(sql="amount BETWEEN 10 AND 12 AND TAGS = 'new'") == {10, 12}
    span = {
        "startingTimestamp": str(BORN_MS + 20 * 60_000),
        "endingTimestamp": str(BORN_MS + 30 * 60_000),
    }
    assert bodies(**span) == set(range(20, 30))
    assert bodies(subscribe="returns", **span) == {21, 24, 27}
    assert bodies(subscribe="nothing") == set()
    assert bodies(startingTimestamp=str(BORN_MS + 10**9)) == set()


def with_batches(tmp_path: Path) -> Store:
    """A topic with batch queues, beside an ordinary one: batches, and messages sent alone."""
    store = Store(tmp_path / "store", file_bytes=2048)
    for number in range(12):
        parts = [
            BatchedMessage(0, b"%d.%d" % (number, part), f"TAGS\x01{tag}\x02KEYS\x01{part}\x02")
            for part, tag in enumerate(("paid", "new", "paid"))
        ]
        base = store.offsets.get(("packs", number % 2), 0)
        store.add(
            "packs", number % 2, messages=3, body=encode(parts), sys_flag=WRAPPED,
            properties=f"INNER_NUM\x013\x02INNER_BASE\x01{base}\x02".encode(),
        )  # fmt: skip
        store.add("packs", number % 2, messages=1, body=b"%d.3" % number)
        store.add("orders", body=b"other", sys_flag=0)
    return store


@pytest.mark.parametrize("has_queues", [True, False])
@pytest.mark.parametrize("tasks", ["1", "7"])
def test_messages_of_batch_queues_are_rows_of_their_own(
    tmp_path: Path, has_queues: bool, tasks: str
) -> None:
    root = with_batches(tmp_path).save(has_queues=has_queues)
    found = rows(root, subscribe="packs", minPartitions=tasks)
    assert [row["body"] for row in found] == [
        b"%d.%d" % (n, k) for n in range(12) for k in range(4)
    ]
    for number in (0, 1):
        offsets = [row["queue_offset"] for row in found if row["queue_id"] == number]
        assert offsets == list(range(24))
    paid = rows(root, subscribe="packs", tags="paid", minPartitions=tasks)
    assert {row["body"].split(b".")[1] for row in paid} == {b"0", b"2", b"3"}
    assert {row["tag"] for row in paid} == {"paid"}
    new = rows(root, subscribe="packs,orders", tags="new", minPartitions=tasks)
    assert [row["body"] for row in new] == [b"%d.1" % number for number in range(12)]
    both = rows(root, subscribe="packs,orders", minPartitions=tasks)
    assert len(both) == 60
    assert {row["sys_flag"] for row in both} == {0}
    assert len(rows(root)) == 60


def test_files_without_a_topic_of_batch_queues_are_not_read(tmp_path: Path) -> None:
    from sprocket.spark.store_files.plan import plan_store

    store = filled(tmp_path)
    store.add("packs", messages=2, body=encode([BatchedMessage(0, b"x", "")] * 2), sys_flag=WRAPPED)
    root = store.save()
    pieces = plan_store(read_options({"store": str(root), "subscribe": "packs"}, StoreOptions))
    assert len({piece.file for piece in pieces}) == 1


def test_a_record_that_should_hold_a_batch_and_does_not_is_loss(tmp_path: Path) -> None:
    store = with_batches(tmp_path)
    at = store.add("packs", messages=2, body=b"no batch", sys_flag=WRAPPED)
    root = store.save()
    with pytest.raises(ReadFailed, match=f"at position {at % 2048}.*holds no batch"):
        rows(root, subscribe="packs")
    assert len(rows(root, subscribe="packs", failOnDataLoss="false")) == 48


def test_files_that_cannot_hold_the_wanted_time_are_not_read(tmp_path: Path) -> None:
    from sprocket.spark.store_files.plan import plan_store

    store = filled(tmp_path)
    root = store.save()
    options = {"store": str(root), "startingTimestamp": str(BORN_MS + 50 * 60_000)}
    pieces = plan_store(read_options(options, StoreOptions))
    assert pieces[0].file.start > 0
    assert pieces[-1].file.is_last
    options = {"store": str(root), "endingTimestamp": str(BORN_MS)}
    assert [one.file.start for one in plan_store(read_options(options, StoreOptions))][-1:] == [0]


def test_files_without_the_topic_are_not_read(tmp_path: Path) -> None:
    from sprocket.spark.store_files.plan import plan_store

    store = filled(tmp_path)
    last = store.add("rare")
    root = store.save()
    (piece,) = plan_store(read_options({"store": str(root), "subscribe": "rare"}, StoreOptions))
    assert piece.by_queues
    assert piece.file.start <= last < piece.file.end


def test_compressed_bodies_are_opened_and_bent_properties_are_rows(tmp_path: Path) -> None:
    store = Store(tmp_path / "store", file_bytes=1 << 23)
    store.add("odd", body=compress(b"z" * 1000, Compression.ZLIB), sys_flag=0x301)
    store.add("odd", properties=b"bent\x01\xff\x02\x02", body=bytes(range(256)))
    store.add("odd", body=b"x" * (4 << 20))
    found = rows(store.save())
    assert [len(row["body"]) for row in found] == [1000, 256, 4 << 20]
    assert dict(found[1]["properties"]) == {"bent": "\ufffd"}


def test_prepared_and_rolled_back_records_are_not_messages(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    for state in (0, 4, 8, 12):
        store.add("orders", sys_flag=state)
    assert [row["sys_flag"] for row in rows(store.save(has_queues=False))] == [0, 8]


@pytest.mark.parametrize("kept", [0, 3, 50, 95])
def test_a_torn_tail_ends_the_log(tmp_path: Path, kept: int) -> None:
    store = filled(tmp_path)
    at, size = store.places[-1]
    store.log[at + kept : at + size] = bytes(size - kept)
    root = store.save()
    assert log_offsets(rows(root)) == [at for at, _ in store.places[:-1]]


def test_damage_in_between_names_file_and_position(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = filled(tmp_path)
    root = store.save()
    at, size = store.places[20]
    file = root / "commitlog" / f"{at // 2048 * 2048:020}"
    data = bytearray(file.read_bytes())
    data[at % 2048 : at % 2048 + 8] = b"nonsense"
    file.write_bytes(data)
    for given in ({}, {"subscribe": "orders,returns"}):
        with pytest.raises(ReadFailed, match=rf"{file.name}: at position {at % 2048}, "):
            rows(root, **given)
        found = rows(root, failOnDataLoss="false", **given)
        assert log_offsets(found) == [p for p, _ in store.places if p != at]
    assert f"up to {at % 2048 + size}: {size} bytes are no records" in caplog.text


def test_a_changed_body_is_seen_where_bodies_are_checked(tmp_path: Path) -> None:
    store = filled(tmp_path)
    at, _ = store.places[5]
    store.log[at + 88] ^= 1
    root = store.save()
    assert len(rows(root)) == 60
    with pytest.raises(ReadFailed, match=rf"at position {at}, "):
        rows(root, checkBodies="true")
    found = rows(root, checkBodies="true", failOnDataLoss="false")
    assert log_offsets(found) == [p for p, _ in store.places if p != at]


def test_bodies_of_the_last_file_are_checked_unless_they_are_noted_as_on_the_disk(
    tmp_path: Path,
) -> None:
    store = filled(tmp_path)
    at, _ = store.places[-1]
    store.log[at + 88] ^= 1
    root = store.save()
    assert log_offsets(rows(root)) == [p for p, _ in store.places[:-1]]
    (root / "checkpoint").write_bytes(struct.pack(">q", BORN_MS + 10**9))
    assert log_offsets(rows(root)) == [p for p, _ in store.places]
    assert log_offsets(rows(root, checkBodies="true")) == [p for p, _ in store.places[:-1]]


def test_a_missing_file_is_loss(tmp_path: Path) -> None:
    store = filled(tmp_path)
    root = store.save()
    files = sorted((root / "commitlog").iterdir())
    files[1].unlink()
    with pytest.raises(ReadFailed, match=f"missing up to .*{files[2].name}"):
        rows(root)
    found = rows(root, failOnDataLoss="false")
    assert log_offsets(found) == [at for at, _ in store.places if not 2048 <= at < 4096]


def test_a_file_that_goes_while_it_is_read_is_loss(tmp_path: Path) -> None:
    from sprocket.spark.store_files.read import StoreReader
    from tests.spark.stores import ALL

    root = filled(tmp_path).save()
    for fails in ("true", "false"):
        reader = StoreReader(
            read_options({"store": str(root), "failOnDataLoss": fails}, StoreOptions), ALL
        )
        first, *_ = reader.partitions()
        Path(first.piece.file.path).rename(root / "gone")
        if fails == "true":
            with pytest.raises(ReadFailed, match="it cannot be read"):
                list(reader.read(first))
        else:
            assert list(reader.read(first)) == []
        (root / "gone").rename(first.piece.file.path)


def test_what_a_crashed_broker_had_not_put_into_its_queues_is_read(tmp_path: Path) -> None:
    store = filled(tmp_path)
    for entries in store.entries.values():
        entries.pop()
    root = store.save()
    assert len(rows(root, subscribe="orders,returns")) == 56
    (root / "abort").touch()
    assert len(rows(root, subscribe="orders,returns")) == 60


def test_nothing_of_the_store_is_touched(tmp_path: Path) -> None:
    root = filled(tmp_path).save()
    for path in root.rglob("*"):
        path.chmod(0o500 if path.is_dir() else 0o400)
    assert len(rows(root)) == 60
    assert not (root / "lock").exists()


def test_wrong_options_are_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no folder of a broker's store"):
        rows(tmp_path)
    with pytest.raises(ConfigError, match="startingOffsets is not for reads of a store"):
        read_options({"store": "s", "startingOffsets": "latest"}, StoreOptions)
    with pytest.raises(ConfigError, match="store is not for streams"):
        read_options({"store": "s", "namesrvAddr": "a:1", "subscribe": "o"}, StreamOptions)
    with pytest.raises(ConfigError, match="no option storepath: did you mean store"):
        read_options({"storepath": "s"}, StoreOptions)
    with pytest.raises(ConfigError, match="not both"):
        read_options({"store": "s", "subscribe": "a", "subscribePattern": "b"}, StoreOptions)


def test_an_empty_store_is_no_rows(tmp_path: Path) -> None:
    root = Store(tmp_path / "store").save()
    assert rows(root) == []
    assert rows(root, subscribe="orders") == []


def test_a_log_on_several_disks_is_one_log(tmp_path: Path) -> None:
    store = filled(tmp_path)
    root = store.save()
    other = tmp_path / "disk-2"
    other.mkdir()
    for file in sorted((root / "commitlog").iterdir())[1::2]:
        file.rename(other / file.name)
    both = f"{root};{other}"
    for given in ({}, {"subscribe": "orders,returns"}):
        found = rows(Path(both), **given)
        assert log_offsets(found) == [at for at, _ in store.places]
