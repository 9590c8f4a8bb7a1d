"""The number of brokers that a folder has is no surprise."""

from __future__ import annotations

import pytest

from sprocket.base.errors import CorruptRecord, UsageError
from sprocket.container.remembered import (
    AddedBroker,
    ContainerFile,
    ContainerState,
    brokers_at_start,
    check_is_single,
    new_state,
)
from sprocket.testing.disk import MemoryDisk


@pytest.fixture
def file() -> ContainerFile:
    return ContainerFile(MemoryDisk(), "/data")


def started(file: ContainerFile, count: int | None, name: str = "b") -> ContainerState:
    return brokers_at_start(file, file._disk, name=name, count=count)


def test_a_new_folder_gets_as_many_as_are_asked_for(file: ContainerFile) -> None:
    assert [each.name for each in started(file, 3).brokers] == ["b-0", "b-1", "b-2"]
    check_is_single(file)


def test_what_was_started_once_starts_again_with_the_number_or_without(
    file: ContainerFile,
) -> None:
    added = AddedBroker(config="/etc/c.conf", name="c", cluster="d", id=0)
    state = ContainerState(brokers=new_state("b", 3).brokers, added=(added,))
    file.save(state)
    assert started(file, 3) == started(file, None) == state


@pytest.mark.parametrize("count", [1, 2, 4])
def test_another_number_is_refused_with_the_command_that_changes_it(
    file: ContainerFile, count: int
) -> None:
    file.save(new_state("b", 3))
    with pytest.raises(
        UsageError, match=f"has 3 brokers.* resize --store /data --processes {count}"
    ):
        started(file, count)
    assert started(file, 3).count == 3


def test_another_name_is_refused(file: ContainerFile) -> None:
    file.save(new_state("b", 3))
    with pytest.raises(UsageError, match=r"called b-0 .* is now c"):
        started(file, 3, name="c")


def test_messages_of_a_single_broker_are_not_left_behind(file: ContainerFile) -> None:
    file._disk.make_directory("/data/commitlog")
    with pytest.raises(
        UsageError, match="messages of a single broker, which 2 processes would not"
    ):
        started(file, 2)


def test_a_single_broker_does_not_start_in_the_folder_of_several(file: ContainerFile) -> None:
    file.save(new_state("b", 3))
    with pytest.raises(UsageError, match=r"has 3 brokers.*--processes 3"):
        check_is_single(file)


@pytest.mark.parametrize("content", [b"", b"{}", b"[1]", b'{"brokers": [], "version": 2}'])
def test_a_damaged_file_is_no_new_folder(file: ContainerFile, content: bytes) -> None:
    file._disk.make_directory("/data/container")
    file._disk.replace("/data/container/brokers.json", content)
    with pytest.raises(CorruptRecord, match=r"brokers\.json"):
        started(file, 3)
