"""The web console over a cluster with many topics, in a real Chromium."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console

from bench.brokers import Node, sprocket_node
from bench.figures import Figure, Report, Sample, cpu_seconds, resident_mib
from bench.scale.topics import name_of, with_topics

_CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
_IDLE_SECONDS = 20.0
_TIMES = 5

MEMORY = Figure("memory of the console, nobody looks", "MiB", False)
IDLE = Figure("its CPU, nobody looks", "% of a core", False)
LIST = Figure("list of topics, until its rows are there", "ms", False)
SEARCH = Figure("search, until its row is there", "ms", False)
TOPIC = Figure("page of a topic, until its queues are there", "ms", False)
LOOKING = Figure("CPU with a list open", "% of a core", False)


def measure(console: Console, folder: Path, quick: bool) -> None:
    """Prints the table; it needs NiceGUI, Playwright and a Chromium."""
    report = Report("web console over topics of 4 queues", ["sprocket"])
    for count in (100, 10_000):
        console.log(f"{count} topics")
        place = folder / str(count)
        place.mkdir()
        with_topics(place, count)
        with sprocket_node(place) as node:
            report.add(f"{count:,} topics", {"sprocket": [_measured(node, count)]})
    report.show(console)


def _measured(node: Node, count: int) -> Sample:
    from playwright.sync_api import sync_playwright

    with _console(node) as (pid, url), sync_playwright() as playwright:
        time.sleep(3)
        memory, idle = resident_mib(pid)["anonymous"], _idle(pid)
        browser = playwright.chromium.launch(executable_path=_CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page()
        last = name_of(count - 1)

        def first_rows() -> None:
            page.goto(f"{url}/topics")
            page.get_by_text(name_of(0)).first.wait_for()

        def search() -> None:
            page.goto(f"{url}/topics")
            page.get_by_text(name_of(0)).first.wait_for()
            began = time.perf_counter()
            page.get_by_label("Search topics").first.fill(last)
            page.get_by_text(last).last.wait_for()
            spent.append(time.perf_counter() - began)

        def topic() -> None:
            page.goto(f"{url}/topic?name={last}")
            page.get_by_text("broker-a").first.wait_for()

        spent: list[float] = []
        first_rows()  # once before it counts: the browser fetches the scripts
        found: Sample = {
            MEMORY: memory,
            IDLE: idle,
            LIST: _median_ms(first_rows),
            TOPIC: _median_ms(topic),
        }
        for _ in range(_TIMES):
            search()
        found[SEARCH] = sorted(spent)[_TIMES // 2] * 1000
        first_rows()
        found[LOOKING] = _idle(pid)
        browser.close()
        return found


def _median_ms(do: Callable[[], None]) -> float:
    times = []
    for _ in range(_TIMES):
        began = time.perf_counter()
        do()
        times.append(time.perf_counter() - began)
    return sorted(times)[_TIMES // 2] * 1000


def _idle(pid: int) -> float:
    """The CPU of a process while nothing new is asked, % of a core."""
    before = cpu_seconds(pid)
    time.sleep(_IDLE_SECONDS)
    return 100 * (cpu_seconds(pid) - before) / _IDLE_SECONDS


@contextmanager
def _console(node: Node) -> Iterator[tuple[int, Any]]:
    """A console for a node; gives its process and its address."""
    names = f"127.0.0.1:{node.nameserver_port}"
    command = [sys.executable, "-m", "sprocket.cli", "console", "-n", names, "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            found = re.search(r"(http://[^ /]+:\d+)", line)
            if found is None:
                raise RuntimeError(f"the console said {line!r}")
            yield process.pid, found[1]
        finally:
            process.terminate()
