"""A main coroutine as a process: signals, exit codes."""

from __future__ import annotations

import gc
import signal
import subprocess
import sys
import warnings

import pytest

from sprocket.runtime import process
from sprocket.runtime.process import run
from tests.support import LONGEST

WAITS = """
import asyncio, sys
from sprocket.runtime.process import run
async def main():
    print("ready", flush=True)
    try:
        await asyncio.sleep(600)
    finally:
        print("closing", flush=True)
        {closing}
        print("closed", flush=True)
sys.exit(run(main()))
"""


def started(closing: str = "await asyncio.sleep(0)") -> subprocess.Popen[bytes]:
    script = WAITS.format(closing=closing)
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    return process


def test_its_result_is_the_exit_code() -> None:
    async def three() -> int:
        return 3

    async def nothing() -> None:
        return None

    assert run(three()) == 3
    assert run(nothing()) == 0


def test_its_errors_come_out() -> None:
    async def fails() -> None:
        raise LookupError("x")

    with pytest.raises(LookupError):
        run(fails())


@pytest.mark.process
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_a_signal_closes_in_order(number: signal.Signals, code: int) -> None:
    process = started()
    process.send_signal(number)
    out, _ = process.communicate(timeout=LONGEST)
    assert out == b"closing\nclosed\n"
    assert process.returncode == code


@pytest.mark.process
def test_what_could_not_begin_is_no_warning() -> None:
    async def main() -> None:
        raise AssertionError("not reached")

    def interrupted() -> None:
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("error")
        patch.setattr(process, "allow_many_files", interrupted)
        with pytest.raises(KeyboardInterrupt):
            process.run(main())
        gc.collect()


def test_a_second_signal_ends_it_at_once() -> None:
    process = started(closing="await asyncio.sleep(600)")
    assert process.stdout is not None
    process.send_signal(signal.SIGINT)
    assert process.stdout.readline() == b"closing\n"
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=LONGEST)
    assert out == b""
    assert process.returncode == 130


@pytest.mark.skipif(sys.platform == "win32", reason="no such limit there")
def test_a_process_may_open_as_many_files_as_it_may_ask_for() -> None:
    asks = (
        "import resource as r, sys\n"
        "from sprocket.runtime.process import run\n"
        "hard = r.getrlimit(r.RLIMIT_NOFILE)[1]\n"
        "r.setrlimit(r.RLIMIT_NOFILE, (min(hard, 256), hard))\n"
        "async def main(): return 7 if r.getrlimit(r.RLIMIT_NOFILE)[0] == hard else 1\n"
        "sys.exit(run(main()))\n"
    )
    assert subprocess.run([sys.executable, "-c", asks], check=False).returncode == 7


def test_what_is_loaded_at_the_start_is_left_out_of_collections() -> None:
    script = (
        "import gc, sys\n"
        "from sprocket.runtime.process import run\n"
        "async def main():\n"
        "    return gc.get_freeze_count() > 1000 > len(gc.get_objects()) - 1000\n"
        "sys.exit(not run(main()))\n"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
