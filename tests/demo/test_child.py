from __future__ import annotations

import asyncio
import os
import sys
import time
from pathlib import Path

import pytest

from sprocket.demo.child import Child
from sprocket.runtime import process
from tests.support import LONGEST, run

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(sys.platform == "win32", reason="groups of processes are POSIX's"),
]

#: Starts a grandchild that would stay for a minute, says its number, then echoes.
PARENT = """
import subprocess, sys
grandchild = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
print(grandchild.pid, flush=True)
for line in sys.stdin:
    print("got", line, end="", flush=True)
    print("words for the log", file=sys.stderr, flush=True)
if not STAYS:
    grandchild.terminate()
    grandchild.wait()
else:
    grandchild.wait()
"""


def child(log: Path, *, stays: bool = False) -> Child:
    return Child([sys.executable, "-c", PARENT.replace("STAYS", str(stays))], log)


def is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    # The dead whose parent is gone too may wait for whoever inherits them: they count as gone.
    if not Path("/proc/self/stat").exists():
        return True
    try:
        about = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):  # gone in this moment
        return False
    return about.rpartition(")")[2].split()[0] != "Z"


def is_gone(pid: int) -> bool:
    """Whether a killed process has ended: the kernel takes a moment over it."""
    deadline = time.monotonic() + LONGEST
    while is_there(pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    return not is_there(pid)


def test_it_gets_lines_and_says_lines_until_its_input_ends(tmp_path: Path) -> None:
    async def main() -> None:
        async with child(tmp_path / "log") as running:
            lines = running.lines()
            await anext(lines)
            running.tell(b"one")
            running.tell(b"two")
            assert [await anext(lines), await anext(lines)] == [b"got one\n", b"got two\n"]

    run(main())
    assert (tmp_path / "log").read_text() == "words for the log\n" * 2


def test_one_that_is_gone_can_still_be_told(tmp_path: Path) -> None:
    async def main() -> None:
        async with Child([sys.executable, "-c", "print('gone')"], tmp_path / "log") as gone:
            assert [line async for line in gone.lines()] == [b"gone\n"]
            for _ in range(3):
                gone.tell(b"one")
                await asyncio.sleep(0)  # the loop sees that the pipe is closed

    process.run(main())  # on the loop of `make run`


def test_whoever_it_started_goes_with_it_when_we_fail(tmp_path: Path) -> None:
    pids = []

    async def main() -> None:
        async with child(tmp_path / "log", stays=True) as running:
            pids.append(int(await anext(running.lines())))
            raise KeyError("ours")

    with pytest.raises(KeyError):
        run(main())
    assert is_gone(pids[0])


def test_or_does_not_end_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sprocket.demo.child._GRACE_S", 0.1)
    pids = []

    async def main() -> None:
        async with child(tmp_path / "log", stays=True) as running:
            pids.append(int(await anext(running.lines())))

    run(main())
    assert is_gone(pids[0])
