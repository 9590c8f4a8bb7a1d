from __future__ import annotations

import io
import os
import signal
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from sprocket.base.errors import SprocketError
from sprocket.demo import command
from sprocket.demo.plan import Plan
from sprocket.demo.screen import Screen
from tests.support import LONGEST

pytestmark = pytest.mark.process


def plan(store: Path, **more: int) -> Plan:
    ports = {"nameserver_port": 0, "broker_port": 0, **more}
    return Plan(store=store, messages=300, has_spark=False, **ports)


def done(wanted: Plan) -> tuple[int, str]:
    """Exit code, and what the screen showed."""
    shown = io.StringIO()
    code = command.demonstrate(wanted, Screen(Console(file=shown, width=100)))
    return code, shown.getvalue()


def test_all_orders_are_sent_and_billed_by_both_members_and_again(tmp_path: Path) -> None:
    for _ in range(2):
        code, shown = done(plan(tmp_path / "store"))
        assert code == 0, shown
        assert "300 orders sent to topic orders" in shown
        assert shown.count("300/300") == 2
        assert "member 1 billed" in shown
        assert "member 2 billed" in shown
        assert "What to try next" in shown


def test_a_port_that_is_taken_is_one_clear_line(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, shown = done(plan(tmp_path / "store", broker_port=port))
    assert code == 1
    assert "failed" in shown
    assert str(port) in shown
    assert "Traceback" not in shown


def test_what_fails_within_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_orders(*_: object, **__: object) -> object:
        raise SprocketError("no orders today")

    monkeypatch.setattr("sprocket.demo.tour.orders", no_orders)
    assert done(plan(tmp_path / "store")) == (1, "failed: no orders today\n")


@pytest.mark.skipif(sys.platform == "win32", reason="the launcher is another there")
def test_why_spark_cannot_start_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyspark")
    monkeypatch.setenv("PATH", str(tmp_path))
    code, shown = done(replace(plan(tmp_path / "store"), has_spark=True))
    assert code == 1, shown
    assert "failed: the Spark job failed: Spark's launcher is a bash script" in shown
    assert "Traceback" not in shown


@pytest.mark.skipif(sys.platform == "win32", reason="Ctrl-C is another thing there")
def test_ctrl_c_ends_it_with_code_130_and_one_line(tmp_path: Path) -> None:
    arguments = ["--store", str(tmp_path / "store"), "--messages", "5000000", "--no-spark"]
    ports = ["--nameserver-port", "0", "--broker-port", "0"]
    running = subprocess.Popen(
        [sys.executable, "-m", "sprocket.demo", *arguments, *ports],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert running.stdout is not None
    assert "name server" in running.stdout.readline()
    os.kill(running.pid, signal.SIGINT)
    shown, _ = running.communicate(timeout=LONGEST)
    assert running.returncode == 130, shown
    assert shown.splitlines()[-1] == "stopped; everything is closed, and the data is kept"
    assert "Traceback" not in shown
