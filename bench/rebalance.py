"""How long queues have no owner when members of a group join, leave in order, and are killed.

Two members share a topic's queues, in processes of their own; a third joins, then leaves, then
another joins and is killed. Every 20 ms all members are asked which queues they hold. The Python
client stands beside Java's 5.3.3, both at the same Sprocket broker.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, Protocol

from rich.console import Console

from bench.brokers import Node, create_topic, java_missing, sprocket_node
from bench.figures import Figure, Report, Sample
from tests.compat.javaland import JavaDriver

QUEUES = 8
TOPIC = "BenchRebalance"
#: Seconds between two looks, and how long after an event all must be settled.
STEP, PATIENCE = 0.02, 90.0

GAP = Figure("a queue without an owner, longest", "s", False)
SETTLED = Figure("until each queue has one owner", "s", False)


class Member(Protocol):
    """One consumer."""

    def queues(self) -> set[str]:
        """The queues that it holds."""
        ...

    def leave(self) -> None:
        """Ends it in order."""
        ...

    def kill(self) -> None:
        """Ends it as a crash would."""
        ...


class PythonMember:
    """A `bench.member` process."""

    def __init__(self, node: Node, group: str, kind: str) -> None:
        servers = f"127.0.0.1:{node.nameserver_port}"
        command = [sys.executable, "-m", "bench.member", servers, group, TOPIC, kind]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.queues()  # answers once it has started

    def queues(self) -> set[str]:
        """The queues that it holds."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return set(json.loads(self._process.stdout.readline() or "[]"))

    def leave(self) -> None:
        """Ends it in order."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(30)

    def kill(self) -> None:
        """Ends it as a crash would."""
        self._process.kill()
        self._process.wait()


class JavaMember:
    """A driver with one consumer."""

    def __init__(self, node: Node, group: str, kind: str, *, folder: Path, name: str) -> None:
        self._driver = JavaDriver(work=folder, name=name, jvm=("-Xmx128m",)).start()
        self._group = group
        self._driver.call(
            "consumer.start",
            group=group,
            namesrv=f"127.0.0.1:{node.nameserver_port}",
            topic=TOPIC,
            orderly=kind == "ordered",
        )

    def queues(self) -> set[str]:
        """The queues that it holds."""
        held: list[Any] = self._driver.call("consumer.queues", group=self._group)["queues"]
        return {f"{q['brokerName']}:{q['queueId']}" for q in held if q["topic"] == TOPIC}

    def leave(self) -> None:
        """Ends it in order."""
        self._driver.call("consumer.stop", group=self._group)
        self._driver.kill()

    def kill(self) -> None:
        """Ends it as a crash would."""
        self._driver.kill()


class Watch:
    """Looks at who holds which queue."""

    def __init__(self, members: Sequence[Member]) -> None:
        self.members = list(members)
        self._seen: dict[str, float] = {}
        self._longest = 0.0

    def settle(self, *, joining: Future[Member] | None = None) -> Sample:
        """Looks until each queue has one owner, and each member a queue, for a second.

        Args:
            joining: one more member that is being started; it counts from when it is there.

        Returns:
            How long that took, and the longest gap.

        Raises:
            TimeoutError: it does not come about.
        """
        good_since = None
        began = since = time.monotonic()
        self._longest = 0.0
        while True:
            now = time.monotonic()
            if joining is not None and joining.done():
                self.members.append(joining.result())
                joining, since = None, now
            shares = [member.queues() for member in self.members]
            held = [queue for share in shares for queue in share]
            for queue in {*self._seen, *held}:
                last = self._seen.get(queue, now)
                if queue in held:
                    self._longest = max(self._longest, now - max(last, began) - STEP)
                    self._seen[queue] = now
            is_good = joining is None and all(shares) and len(held) == len(set(held)) == QUEUES
            good_since = (good_since or now) if is_good else None
            if good_since is not None and now - good_since >= 1.0:
                return {GAP: max(self._longest, 0.0), SETTLED: max(good_since - since, 0.0)}
            if now - began > PATIENCE:
                raise TimeoutError(f"after {PATIENCE:g} s the queues are held as {sorted(held)}")
            time.sleep(STEP)


def story(
    start: Callable[[str], Member], groups: Iterator[str], samples: dict[str, list[Sample]]
) -> None:
    """One round of one client and kind: a third member joins, leaves, joins and is killed."""
    group = next(groups)
    members = [start(group) for _ in range(2)]
    watch = Watch(members)
    try:
        watch.settle()
        for end in ("leave", "kill"):
            with ThreadPoolExecutor(1) as starter:
                samples["join"].append(watch.settle(joining=starter.submit(start, group)))
            third = watch.members.pop()
            with ThreadPoolExecutor(1) as ender:
                ender.submit(third.leave if end == "leave" else third.kill)
                samples[end].append(watch.settle())
    finally:
        for member in watch.members:
            with contextlib.suppress(OSError, subprocess.TimeoutExpired):
                member.kill()


def main(console: Console, folder: Path, *, quick: bool, rounds: int) -> None:
    """Prints one table."""
    numbers = itertools.count()
    groups = (f"BenchRebalance{number}" for number in itertools.count())
    with sprocket_node(folder) as node:
        create_topic(node, TOPIC, QUEUES)
        sides: dict[str, Callable[[str, str], Member]] = {
            "python": lambda group, kind: PythonMember(node, group, kind)
        }
        if java_missing() is None:
            sides["java"] = lambda group, kind: JavaMember(
                node, group, kind, folder=folder, name=f"member-{next(numbers)}"
            )
        report = Report("rebalance, at the sprocket broker", list(sides))
        for kind in ("concurrent",) if quick else ("concurrent", "ordered"):
            samples: dict[str, dict[str, list[Sample]]] = {
                name: {"join": [], "leave": [], "kill": []} for name in sides
            }
            for number in range(rounds):
                for name, side in sides.items():
                    console.log(f"{kind}, {name}, round {number + 1}")
                    story(
                        lambda group, side=side, kind=kind: side(group, kind), groups, samples[name]
                    )  # type: ignore[misc]
            for event in ("join", "leave", "kill"):
                report.add(f"{kind}: after {event}", {name: samples[name][event] for name in sides})
        report.show(console)
