"""The number of a broker, in RocketMQ's files."""

from __future__ import annotations

import pytest

from sprocket.base.errors import ConfigError
from sprocket.election.elector import ElectionRefused
from sprocket.election.identity import IdentityFile, NumberDraft
from sprocket.testing.disk import MemoryDisk


@pytest.fixture
def disk() -> MemoryDisk:
    made = MemoryDisk()
    made.make_directory("/data")
    return made


def test_the_files_are_those_of_rocketmq(disk: MemoryDisk) -> None:
    file = IdentityFile(disk, "/data", "DefaultCluster", "broker-a")
    assert file.load() is None
    assert file.load_draft() is None
    file.save_draft(NumberDraft(3, "10.0.0.1:10911;1700000000000"))
    assert disk.read("/data/brokerIdentity-temp") == (
        b"DefaultCluster#broker-a#3#10.0.0.1:10911;1700000000000"
    )
    assert file.load_draft() == NumberDraft(3, "10.0.0.1:10911;1700000000000")
    file.save(3)
    assert disk.read("/data/brokerIdentity") == b"DefaultCluster#broker-a#3"
    assert file.load() == 3
    assert file.load_draft() is None


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "no cluster#name#number"),
        (b"C#b", "no cluster#name#number"),
        (b"C#b#", "no number"),
        (b"C#b#0", "no number"),
        (b"C#b#-1", "no number"),
        (b"C#b#\xff", "no number"),
        (b"C#b#" + b"9" * 30, "no number"),
        (b"C#b#1#code", "no cluster#name#number"),
        (b"D#b#1", "belongs to broker b of cluster D"),
        (b"C#c#1", "belongs to broker c of cluster C"),
    ],
)
def test_a_file_that_is_not_this_brokers_is_refused(
    disk: MemoryDisk, content: bytes, message: str
) -> None:
    disk.replace("/data/brokerIdentity", content)
    with pytest.raises(ElectionRefused, match=message):
        IdentityFile(disk, "/data", "C", "b").load()


@pytest.mark.parametrize("content", [b"", b"C#b#1", b"C#b#x#code", b"D#b#1#code", b"\x00" * 9])
def test_a_damaged_draft_is_as_good_as_none(disk: MemoryDisk, content: bytes) -> None:
    disk.replace("/data/brokerIdentity-temp", content)
    assert IdentityFile(disk, "/data", "C", "b").load_draft() is None


@pytest.mark.parametrize("names", [("C#", "b"), ("C", "b#1")])
def test_a_name_that_would_break_the_file_is_refused(
    disk: MemoryDisk, names: tuple[str, str]
) -> None:
    with pytest.raises(ConfigError, match="have no # in them"):
        IdentityFile(disk, "/data", *names)
