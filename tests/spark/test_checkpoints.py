"""The offsets in a checkpoint are read and set; what Spark itself makes of it: `test_source`."""

from __future__ import annotations

import json

import pytest

from sprocket.base.errors import UsageError
from sprocket.clientcore.witness import Witness
from sprocket.message.queue import QueueId
from sprocket.spark.checkpoints import read_last, set_offsets
from sprocket.spark.options.checkpoint import StreamOffsets, shape_checkpoint
from sprocket.testing.disk import MemoryDisk

ONE, OTHER = QueueId("orders", "broker-a", 0), QueueId("orders", "broker-a", 1)
STANDS = StreamOffsets(
    {ONE: 5, OTHER: 7}, {ONE: Witness(4, 900, 1_700_000_000_000), OTHER: Witness(6, 990, 1)}
)
KAFKA = '{"orders":{"0":17}}'


def checkpoint(*lines: str, batch: int = 12, is_done: bool = True) -> MemoryDisk:
    disk = MemoryDisk()
    for folder in ("cp/offsets", "cp/commits"):
        disk.make_directory(folder)
    sources = lines or (json.dumps(shape_checkpoint(STANDS)),)
    for number in (9, batch):  # 9 comes behind 12 in the order of names
        disk.replace(f"cp/offsets/{number}", "\n".join(["v1", "{}", *sources]).encode())
        disk.replace(f"cp/offsets/.{number}.crc", b"crc")
        if is_done or number != batch:
            disk.replace(f"cp/commits/{number}", b"v1\n{}")
    return disk


def test_the_last_batch_is_read_with_the_sources_that_are_ours() -> None:
    ours = json.dumps(shape_checkpoint(STANDS))
    for folder in ("cp", "cp/", "file:cp"):
        found = read_last(checkpoint(KAFKA, ours, "-", '{"logOffset":3}', "[]"), folder)
        assert (found.batch, found.is_done, dict(found.sources)) == (12, True, {1: STANDS})
    assert not read_last(checkpoint(is_done=False), "cp").is_done


def test_offsets_that_are_set_are_the_next_batchs_beginning() -> None:
    disk = checkpoint(KAFKA, json.dumps(shape_checkpoint(STANDS)), "-")
    set_offsets(disk, read_last(disk, "cp"), 1, {ONE: 2})
    found = read_last(disk, "cp")
    # the other queue stays; the queue that was set is recognised anew
    assert found.sources[1] == StreamOffsets({ONE: 2, OTHER: 7}, {OTHER: Witness(6, 990, 1)})
    assert found.lines[:3] == ("v1", "{}", KAFKA)
    assert found.lines[4] == "-"
    assert disk.size("cp/offsets/.12.crc") is None, "Hadoop would refuse the file"
    assert disk.size("cp/offsets/.9.crc") is not None
    assert b'"0": 5' in (disk.read("cp/offsets/12.bak") or b"")


def test_a_folder_without_a_query_is_refused() -> None:
    with pytest.raises(UsageError, match="no checkpoint of a query"):
        read_last(MemoryDisk(), "cp")


def changed(content: bytes) -> MemoryDisk:
    disk = checkpoint()
    disk.replace("cp/offsets/13", content)
    return disk


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"v2\n{}\n-", "version 'v2'"),
        (b"\x1b[31m\0", r"version '\\x1b"),
        (b"", "version"),
        (b"\xff\xfe", "not text"),
    ],
)
def test_what_is_no_file_of_offsets_is_refused(content: bytes, text: str) -> None:
    with pytest.raises(UsageError, match=text):
        read_last(changed(content), "cp")


@pytest.mark.parametrize(
    "line",
    [
        "[" * 100_000,
        '{"orders":{"broker-a":{"x":1}}}',
        '{"orders":{"broker-a":{"0":"1"}}}',
        '{"orders":{"broker-a":{"0":1.5}}}',
        '{"orders":{"broker-a":{"0":true}}}',
        '{":read":{"orders":{"broker-a":{"0":[1]}}}}',
        '{"orders":{"broker-a":{"0":-1}}}',
        f'{{"orders":{{"broker-a":{{"0":{1 << 63}}}}}}}',
        '{"orders":{"broker-a":{"-1":0}}}',
        '{"\\u001b[31m":{"broker-a":{"0":1}}}',
        '{"orders":{"\\ud800":{"0":1}}}',
        "null",
        "",
    ],
)
def test_a_line_that_is_not_ours_is_no_source(line: str) -> None:
    assert read_last(changed(f"v1\n{{}}\n{line}".encode()), "cp").sources == {}


def test_a_batch_that_is_not_done_is_not_touched() -> None:
    disk = checkpoint(is_done=False)
    before = disk.read("cp/offsets/12")
    with pytest.raises(UsageError, match="start the query once more"):
        set_offsets(disk, read_last(disk, "cp"), 0, {ONE: 2})
    assert disk.read("cp/offsets/12") == before
    assert disk.size("cp/offsets/.12.crc") is not None


@pytest.mark.parametrize("source", [1, 7])
def test_a_source_of_another_kind_is_not_touched(source: int) -> None:
    disk = checkpoint(json.dumps(shape_checkpoint(STANDS)), KAFKA)
    with pytest.raises(UsageError, match="no RocketMQ source"):
        set_offsets(disk, read_last(disk, "cp"), source, {ONE: 2})


@pytest.mark.parametrize("folder", ["hdfs://host/cp", "s3a://bucket/cp", "file://host/cp"])
def test_a_folder_elsewhere_is_named(folder: str) -> None:
    with pytest.raises(UsageError, match="not on this machine"):
        read_last(MemoryDisk(), folder)


@pytest.mark.parametrize("folder", ["file:///%00", "a\0b", "http://["])
def test_what_is_no_path_is_refused(folder: str) -> None:
    with pytest.raises(UsageError, match=r"is no path|neither a folder nor a URL"):
        read_last(MemoryDisk(), folder)
