"""`sprocket proxy`, and `--grpc-port` of `sprocket standalone`, as processes."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.parts import sprocket

pytestmark = pytest.mark.process


def started(*words: str) -> tuple[subprocess.Popen[str], str]:
    """A running command, and its first line."""
    process = subprocess.Popen(
        [sys.executable, "-m", "sprocket", *words], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    return process, process.stdout.readline()


def listens(address: str) -> bool:
    host, _, port = address.rpartition(":")
    with socket.socket() as probe:
        return probe.connect_ex((host, int(port))) == 0


def children_of(process: subprocess.Popen[str]) -> set[int]:
    path = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    return {int(each) for each in path.read_text().split()}


def test_a_proxy_starts_and_stops() -> None:
    process, line = started("proxy", "--nameserver", "127.0.0.1:1", "--port", "0")
    assert line.startswith("sprocket proxy is ready: 127.0.0.1:")
    assert listens(line.split()[-1])
    process.send_signal(signal.SIGINT)
    assert process.wait(20) == 0


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="processes are found by /proc")
def test_processes_share_a_port_and_one_that_ends_is_replaced() -> None:
    process, line = started("proxy", "-n", "127.0.0.1:1", "--port", "0", "--processes", "2")
    address = line.split()[4].rstrip(",")
    assert line.strip() == f"sprocket proxy is ready: {address}, 2 processes"
    before = children_of(process)
    assert len(before) == 2
    os.kill(min(before), signal.SIGKILL)
    while len(children_of(process) - before) == 0:
        time.sleep(0.05)
    assert listens(address)
    process.send_signal(signal.SIGTERM)
    assert process.wait(20) == 0
    assert not listens(address)


def test_wrong_options_are_refused() -> None:
    done = sprocket("proxy")
    assert (done.code, "needs name servers" in done.err) == (2, True)
    done = sprocket("standalone", "--grpc-port", "many")
    assert (done.code, "a port, 0 or off" in done.err) == (2, True)


def test_standalone_has_a_port_for_grpc_or_none(tmp_path: Path) -> None:
    words = ("standalone", "--nameserver-port", "0", "--broker-port", "0", "--store")
    for port in ("0", "off"):
        process, line = started(*words, str(tmp_path / port), "--grpc-port", port)
        address = line.split("gRPC ")[1].split(",")[0]
        assert address == "off" if port == "off" else listens(address)
        process.terminate()
        assert process.wait(20) == 0


def test_a_port_that_is_in_use_counts_only_if_it_was_asked_for(tmp_path: Path) -> None:
    words = ("standalone", "--nameserver-port", "0", "--broker-port", "0", "--store")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = subprocess.run(
            [
                sys.executable, "-m", "sprocket", *words, str(tmp_path / "a"),
                "--grpc-port", str(port),
            ],
            capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip
        assert done.returncode == 2
        assert str(port) in done.stderr
