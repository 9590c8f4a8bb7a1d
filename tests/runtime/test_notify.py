"""Notes to systemd arrive where it listens, and do no harm where it does not."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sprocket.runtime.notify import READY, VARIABLE, notify, status

pytestmark = pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="no Unix sockets here")


@pytest.fixture
def systemd(tmp_path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(tmp_path / "notify"))
        listening.settimeout(60)
        yield listening


def test_lines_arrive_in_one_datagram(
    systemd: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, systemd.getsockname())
    assert notify(READY, status("it\nis ready"))
    assert systemd.recv(1000) == b"READY=1\nSTATUS=it is ready"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has abstract addresses")
def test_an_abstract_address_works_too(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(f"\0sprocket-test-{os.getpid()}")
        monkeypatch.setenv(VARIABLE, f"@sprocket-test-{os.getpid()}")
        assert notify(READY)
        assert listening.recv(1000) == b"READY=1"


@pytest.mark.parametrize("place", ["", "relative", "vsock:2:1234", "/nobody/listens/here", "@none"])
def test_nobody_who_listens_is_no_error(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, place)
    assert not notify(READY)


def test_without_systemd_nothing_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    assert not notify(READY)


@pytest.mark.process
def test_a_server_is_ready_only_when_it_listens_and_says_that_it_stops(
    systemd: socket.socket,
) -> None:
    server = subprocess.Popen(
        [sys.executable, "-m", "sprocket", "nameserver", "--port", "0"],
        env={**os.environ, VARIABLE: systemd.getsockname()},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        lines = systemd.recv(1000).decode().splitlines()
        assert lines[0] == READY
        host, port = lines[1].rpartition(": ")[2].split(":")
        socket.create_connection((host, int(port)), timeout=60).close()
        server.send_signal(signal.SIGTERM)
        assert systemd.recv(1000) == b"STOPPING=1"
        assert server.wait(60) == 0
    finally:
        server.kill()
        server.communicate()
