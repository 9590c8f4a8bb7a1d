"""The commands that serve, as real processes."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.parts import sprocket
from tests.support import LONGEST

pytestmark = pytest.mark.process


@contextmanager
def serving(*arguments: str, **environment: str) -> Iterator[subprocess.Popen[str]]:
    """A `sprocket` process that has printed its line; `line` of it is that line."""
    process = subprocess.Popen(
        [sys.executable, "-m", "sprocket", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def first_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline()


def end(process: subprocess.Popen[str], number: int) -> tuple[int, str, str]:
    """Ends a process by a signal; its exit code and what else it printed."""
    process.send_signal(number)
    out, err = process.communicate(timeout=LONGEST)
    return process.returncode, out, err


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_standalone_prints_one_line_and_ends_in_order(tmp_path: Path, number: int) -> None:
    ports = ("--nameserver-port", "0", "--broker-port", "0", "--grpc-port", "0")
    with serving("standalone", "--store", str(tmp_path / "store"), *ports) as process:
        line = first_line(process)
        assert line.startswith("sprocket is ready: name server 127.0.0.1:")
        assert line.endswith(f"store {tmp_path}/store\n")
        assert end(process, number) == (0, "", "")
    assert not (tmp_path / "store" / "abort").exists()


def test_nameserver_and_broker_serve_as_processes_of_their_own(tmp_path: Path) -> None:
    with serving("nameserver", "--port", "0", "--store", str(tmp_path / "ns")) as nameserver:
        address = first_line(nameserver).split()[-1]
        with serving(
            "broker", "--nameserver", address, "--port", "0", "--name", "b-7",
            "--store", str(tmp_path / "b"),
        ) as broker:  # fmt: skip
            assert first_line(broker).startswith("sprocket broker is ready: b-7 at 127.0.0.1:")
            table = sprocket("cluster", "--nameserver", address)
            assert "b-7" in table.out
            assert "yes" in table.out
            assert end(broker, signal.SIGTERM) == (0, "", "")
        assert end(nameserver, signal.SIGTERM) == (0, "", "")


def test_a_broker_that_nobody_reaches_at_the_address_it_tells_says_so(tmp_path: Path) -> None:
    (tmp_path / "broker.conf").write_text("brokerIP1=10.0.0.7\nbrokerRole=ASYNC_MASTER\n")
    given = ("--config", str(tmp_path / "broker.conf"), "--store", str(tmp_path / "store"))
    with serving("standalone", *given, "--nameserver-port", "0", "--broker-port", "0") as process:
        first_line(process)
        code, _, said = end(process, signal.SIGTERM)
    assert code == 0
    assert "10.0.0.7 (brokerIP1), but the broker listens only at 127.0.0.1" in said


def refused(*arguments: str) -> str:
    """Runs a serving command that cannot start; its one line of complaint."""
    done = subprocess.run(
        [sys.executable, "-m", "sprocket", *arguments],
        capture_output=True,
        text=True,
        timeout=LONGEST,
    )
    assert done.returncode != 0
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr


def test_a_port_in_use_is_one_line(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        store = ("--store", str(tmp_path))
        for ports in (
            ("--nameserver-port", str(port), "--broker-port", "0"),
            ("--nameserver-port", "0", "--broker-port", str(port)),
        ):
            complaint = refused("standalone", *store, *ports)
            assert f"cannot listen at 127.0.0.1:{port}" in complaint
        assert f"127.0.0.1:{port}" in refused("nameserver", "--port", str(port))
    assert not (tmp_path / "abort").exists()


def test_a_store_in_use_by_another_process_is_one_line(tmp_path: Path) -> None:
    arguments = (
        "standalone", "--store", str(tmp_path), "--nameserver-port", "0", "--broker-port", "0",
    )  # fmt: skip
    with serving(*arguments) as process:
        first_line(process)
        assert "in use by another process" in refused(*arguments)
        assert end(process, signal.SIGTERM)[0] == 0


def test_a_folder_that_cannot_be_written_is_one_line() -> None:
    complaint = refused(
        "standalone", "--store", "/dev/null/x", "--nameserver-port", "0", "--broker-port", "0"
    )
    assert "/dev/null/x" in complaint
    assert "/dev/null/x" in refused("nameserver", "--store", "/dev/null/x", "--port", "0")


def test_an_unknown_setting_is_one_line(tmp_path: Path) -> None:
    file = tmp_path / "s.toml"
    file.write_text("[broker]\nprot = 1\n")
    complaint = refused("standalone", "--config", str(file))
    assert complaint == (
        f"sprocket: {file}:2: unknown setting 'broker.prot'; did you mean 'port'?\n"
    )


def test_a_broker_conf_and_the_environment_are_obeyed(tmp_path: Path) -> None:
    file = tmp_path / "broker.conf"
    file.write_text(f"brokerName=b-9\nlistenPort=0\nstorePathRootDir={tmp_path}/store\n")
    with serving("standalone", "--config", str(file), SPROCKET_NAMESERVER_PORT="0") as process:
        line = first_line(process)
        assert f"store {tmp_path}/store" in line
        address = line.split("name server ")[1].split(",")[0]
        assert "b-9" in sprocket("cluster", "--nameserver", address).out
        assert end(process, signal.SIGTERM)[0] == 0


def test_standalone_is_ready_soon(tmp_path: Path) -> None:
    """Under a second on a quiet machine; here only that nothing waits for a timer of 30 s."""
    started = time.monotonic()
    with serving(
        "standalone", "--store", str(tmp_path), "--nameserver-port", "0", "--broker-port", "0"
    ) as process:
        first_line(process)
        assert time.monotonic() - started < 25
        assert end(process, signal.SIGTERM)[0] == 0
