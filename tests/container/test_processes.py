"""Processes of this machine: their logs and their cores."""

from __future__ import annotations

import json
import os
import sys

import pytest

from sprocket.container.children import ChildFailed, ChildSpec
from sprocket.container.processes import ProcessLauncher, named
from tests.support import run


def test_each_line_of_a_log_says_whose_it_is() -> None:
    assert named("b-0", b"2026 WARNING x: y") == b"[b-0] 2026 WARNING x: y"
    line = json.loads(named('b"0', b'{"level": "INFO", "message": "x"}'))
    assert line == {"process": 'b"0', "level": "INFO", "message": "x"}
    assert named("b-0", b"") == b"[b-0] "


@pytest.mark.process
def test_the_reason_of_a_failed_start_is_what_the_process_complained_of() -> None:
    lines: list[bytes] = []
    spec = ChildSpec("b-0", ("broker", "--set", "broker.port=none", "--set", "store.flush=MAYBE"))
    with pytest.raises(ChildFailed, match=r"broker\.port.*; .*store\.flush"):
        run(_started(spec, lines))
    assert lines == [], "whoever starts it logs the reason, once"


@pytest.mark.process
def test_what_is_no_command_fails_with_its_code() -> None:
    with pytest.raises(ChildFailed, match=r"exit code 2|No such command"):
        run(_started(ChildSpec("x", ("nothing",)), []))


@pytest.mark.process
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux keeps a process on a core")
def test_a_process_stays_on_its_core_and_ends_with_its_parents_pipe() -> None:
    cores = sorted(os.sched_getaffinity(0))
    spec = ChildSpec(
        "p", ("proxy",),
        {"SPROCKET_PROXY_NAMESERVERS": "127.0.0.1:1", "SPROCKET_PROXY_PORT": "0"}, core=len(cores),
    )  # fmt: skip

    async def history() -> None:
        child = await ProcessLauncher(lambda line: None).launch(spec)
        assert child.about["address"].startswith("127.0.0.1:")
        process = child._process
        assert os.sched_getaffinity(process.pid) == {cores[0]}
        assert process.stdin is not None
        process.stdin.close()
        assert await child.wait() == 0

    run(history())


async def _started(spec: ChildSpec, lines: list[bytes]) -> None:
    await ProcessLauncher(lines.append).launch(spec)
