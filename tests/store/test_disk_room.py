"""No byte of a mapping is touched, not even read, before it has disk space.

On tmpfs each page that a mapping touches takes space, so the pages that a file has show what was
touched; the calls that allocate space show what might be.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from sprocket.broker.broker import Broker
from sprocket.protocol.requests.query import QueryMessage, ViewMessage
from sprocket.runtime.disk import SystemDisk, SystemMappedFile
from sprocket.spark.store_files.scan import LogReader, log_files
from sprocket.store.inspection.dump import DumpSelection, dump
from sprocket.store.inspection.inspected import InspectedStore
from sprocket.store.inspection.verify import Verification
from sprocket.testing.clock import EPOCH_MS, LoopClock
from sprocket.testing.entropy import SeededEntropy
from sprocket.testing.loop import simulate
from sprocket.testing.network import Network
from tests.broker.parts import CONFIG, STORE, Asker

PAGE = 4096
#: Every file has far more pages than a test needs, so that each has parts without space.
SPARSE = replace(
    STORE,
    log_file_bytes=2 << 20,
    queue_file_bytes=50_000 * 20,
    index_slots=200_000,
    index_entries=100_000,
    timer_file_bytes=4 << 20,
)


class WatchedFile(SystemMappedFile):
    """Records which pages it was asked to allocate. Its threads' work is done at once."""

    allocated: dict[str, set[int]]

    async def _in_thread(self, work: Callable[[int, int], None], start: int, end: int) -> None:
        work(start, end)

    def _allows(self, start: int, end: int) -> None:
        pages = range(start // PAGE, -(-end // PAGE))
        self.allocated.setdefault(self.path, set()).update(pages)

    def _zero_some(self, start: int, end: int) -> int:
        done = super()._zero_some(start, end)
        self._allows(start, done)
        return done

    def reserve(self, start: int, end: int) -> None:
        super().reserve(start, end)
        self._allows(start, end)


class WatchedDisk(SystemDisk):
    """A disk that knows which pages of its mapped files may be used."""

    def __init__(self) -> None:
        self.allocated: dict[str, set[int]] = {}

    def map(self, path: str, size: int) -> SystemMappedFile:
        before = pages_of(path) if os.path.exists(path) else set()
        self.allocated.setdefault(path, set()).update(before)
        mapped = super().map(path, size)
        descriptor = os.dup(mapped._descriptor)
        mapped.close()
        watched = WatchedFile(path, descriptor, size, is_new=False)
        watched.allocated = self.allocated
        return watched

    def touched(self) -> dict[str, set[int]]:
        """Pages that were touched without having been allocated, by file."""
        found = {
            path: pages_of(path) - allocated
            for path, allocated in self.allocated.items()
            if os.path.exists(path)
        }
        return {path: pages for path, pages in found.items() if pages}


def pages_of(path: str) -> set[int]:
    """The pages that a file has in memory, which is its disk."""
    found: set[int] = set()
    with open(path, "rb") as file:
        size, at = os.fstat(file.fileno()).st_size, 0
        while at < size:
            try:
                start = os.lseek(file.fileno(), at, os.SEEK_DATA)
            except OSError:  # only a hole follows
                break
            at = os.lseek(file.fileno(), start, os.SEEK_HOLE)
            found.update(range(start // PAGE, -(-at // PAGE)))
    return found


@pytest.fixture
def memory_disk() -> Iterator[Path]:
    """A folder on tmpfs."""
    mounts = Path("/proc/mounts")
    lines = mounts.read_text().splitlines() if mounts.exists() else []
    if not any(line.split()[1:3] == ["/dev/shm", "tmpfs"] for line in lines):
        pytest.skip("needs a tmpfs at /dev/shm")
    made = tempfile.mkdtemp(dir="/dev/shm")
    yield Path(made)
    shutil.rmtree(made)


def broker(disk: SystemDisk, root: Path) -> Broker:
    return Broker(
        CONFIG,
        store=SPARSE,
        root=str(root),
        disk=disk,
        clock=LoopClock(),
        entropy=SeededEntropy(1),
    )


async def use(running: Broker, *, count: int) -> None:
    """Sends of every kind, pulls, searches by key and by any log offset."""
    asker = Asker(running)
    async with asker.pool:
        for number in range(count):
            body = b"%06d" % number * 200
            await asker.send("T", body, KEYS=f"k{number}", UNIQ_KEY=f"u{number}")
        await asker.send("T", b"later", DELAY="2")
        now_ms = EPOCH_MS + int(asyncio.get_running_loop().time() * 1000)
        for seconds in (5, 700, 90_000):
            await asker.send("T", b"timed", TIMER_DELIVER_MS=str(now_ms + seconds * 1000))
        assert len((await asker.pull("T")).messages) > 1
        for log_offset in range(0, 8 << 20, 997 * 64):
            await asker.call(ViewMessage(offset=log_offset))
        for key in ("k3", "nobody", f"k{count - 1}"):
            header = QueryMessage(
                topic="T", key=key, max_num=9, begin_timestamp=0, end_timestamp=1 << 60
            )
            await asker.call(header)
        await asyncio.sleep(40)


def copied(root: Path, name: str) -> Path:
    """A copy in which whatever is zero has no disk space; its file `abort` shows a crash."""
    target = root.parent / name
    shutil.copytree(root, target, copy_function=_sparse)
    return target


def _sparse(source: str, target: str) -> None:
    with open(source, "rb") as file, open(target, "wb") as copy:
        while part := file.read(PAGE):
            if any(part):
                copy.write(part)
            else:
                copy.seek(len(part), os.SEEK_CUR)
        copy.truncate()


def test_what_a_broker_reads_and_writes_has_disk_space(memory_disk: Path) -> None:
    root = memory_disk / "store"

    async def check(_: Network) -> None:
        disk = WatchedDisk()
        async with broker(disk, root) as running:
            await use(running, count=1200)
            assert not disk.touched(), "a first run"
            killed = copied(root, "killed")
        stopped = copied(root, "stopped")
        for folder in (killed, stopped, root):
            disk = WatchedDisk()
            async with broker(disk, folder) as running:
                assert not disk.touched(), f"a start with {folder.name}"
                await use(running, count=1200)
                assert not disk.touched(), f"a second run with {folder.name}"

    simulate(check)


def test_a_start_that_builds_the_views_anew_touches_nothing_without_disk_space(
    memory_disk: Path,
) -> None:
    root = memory_disk / "store"

    async def check(_: Network) -> None:
        async with broker(WatchedDisk(), root) as running:
            await use(running, count=300)
            killed = copied(root, "killed")
        shutil.rmtree(killed / "consumequeue")
        (killed / "timerwheel").unlink()
        disk = WatchedDisk()
        async with broker(disk, killed) as running:
            await use(running, count=10)
            assert not disk.touched()

    simulate(check)


def test_inspecting_a_store_takes_no_disk_space(memory_disk: Path) -> None:
    root = memory_disk / "store"

    async def check(_: Network) -> None:
        async with broker(WatchedDisk(), root) as running:
            await use(running, count=300)

    simulate(check)
    copy = copied(root, "copy")
    before = {str(path): pages_of(str(path)) for path in copy.rglob("*") if path.is_file()}
    (copy / "lock").unlink()
    store = InspectedStore(SystemDisk(), str(copy), SPARSE)
    assert not [finding for finding in Verification(store).findings() if finding.is_fault]
    assert len(list(dump(store, DumpSelection("T")))) > 300
    assert len(list(dump(store, DumpSelection("T", 0)))) > 300
    records = 0
    for file in log_files(str(copy)):
        with LogReader(
            file, checks_bodies=True, damaged=lambda *place: pytest.fail(str(place))
        ) as reader:
            records += sum(len(places.starts) for places in reader.runs())
    assert records > 300
    after = {str(path): pages_of(str(path)) for path in copy.rglob("*") if path.is_file()}
    assert {path: pages for path, pages in after.items() if pages != before[path]} == {}


@pytest.fixture(params=["tmpfs", "ext4"])
def small_disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """A file system of 24 MiB."""
    image, folder = tmp_path / "image", tmp_path / "disk"
    folder.mkdir()
    if request.param == "tmpfs":
        mount = ["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", str(folder)]
    else:
        with open(image, "wb") as file:
            file.truncate(24 << 20)
        mount = ["mount", "-o", "loop", str(image), str(folder)]
    try:
        if request.param == "ext4":
            subprocess.run(["mkfs.ext4", "-q", str(image)], check=True, capture_output=True)
        subprocess.run(mount, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip(f"no {request.param} can be mounted here: that takes root")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def count(folder: Path, what: str) -> int:
    """What a process that fills the disk says; it must not be ended by the system."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.store.filling", str(folder / "store"), what],
        check=False,
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    assert done.returncode == 0, (done.returncode, done.stderr[-2000:])
    return int(done.stdout)


@pytest.mark.process
def test_a_full_disk_ends_no_process_and_loses_nothing(small_disk: Path) -> None:
    filler = small_disk / "other"
    filler.write_bytes(b"x" * (4 << 20))
    filled = count(small_disk, "fill")
    assert filled > 500
    assert count(small_disk, "read") == filled
    filler.unlink()
    more = count(small_disk, "kill")
    assert more > filled
    assert count(small_disk, "read") == more
    assert count(small_disk, "kill") >= more
