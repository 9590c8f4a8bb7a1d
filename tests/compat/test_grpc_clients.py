"""RocketMQ's own gRPC clients, in each language they are written in, at our servers.

The scenarios run beside each other, since most of their time is waiting; each has a test. A node is
one process of ours, as a user starts it. `SPROCKET_LONG=1` also puts our proxy before our broker
apart, our proxy before Java's broker and name server, Java's proxy before ours, and Java's before
Java's: what fails there is not our fault.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from sprocket.admin.groups import GroupSettings
from sprocket.message.lite import BIND_TOPIC
from tests.compat import clients5
from tests.compat.clients5 import Program
from tests.compat.grpc_world import OURS, WORLDS, World

pytest.register_assert_rewrite("tests.compat.grpc_scenarios")
from tests.compat.grpc_scenarios import SCENARIOS, Client, Scenario  # noqa: E402  (rewritten first)

pytestmark = pytest.mark.process

Key = tuple[str, str]

#: Scenarios beside each other.
_BESIDE = 24

#: Every scenario in every language that has it.
ALL = [(language, name) for name, each in SCENARIOS.items() for language in each.languages]
if "SPROCKET_LONG" not in os.environ:
    # The libraries of the Rust client take minutes to build.
    ALL = [key for key in ALL if key[0] != "rust"]


class Runs:
    """The scenarios that a session wants, each running or done."""

    def __init__(self, world: World, work: Path, wanted: list[Key]) -> None:
        """Start them all; a language that cannot be had is kept with the reason."""
        self._world = world
        self._programs: dict[str, Program] = {}
        self._missing: dict[str, str] = {}
        for language in sorted({language for language, _ in wanted}):
            try:
                self._programs[language] = clients5.start(language, work)
            except pytest.skip.Exception as reason:
                self._missing[language] = str(reason)
        able = [key for key in wanted if key[0] in self._programs and self._has(key[1])]
        clients = {key: self._client(*key) for key in able}
        world.make(
            {client.topic: SCENARIOS[name].kind for (_, name), client in clients.items()},
            {
                client.group: _group(SCENARIOS[name], client.topic)
                for (_, name), client in clients.items()
            },
        )
        self._pool = ThreadPoolExecutor(_BESIDE)
        self._done: dict[Key, Future[None]] = {
            key: self._pool.submit(SCENARIOS[key[1]].run, client) for key, client in clients.items()
        }

    def check(self, language: str, name: str) -> None:
        """Wait for a scenario, and raise what it raised."""
        if language in self._missing:
            pytest.skip(self._missing[language])
        if not self._has(name):
            pytest.skip("these servers have no lite topics")
        self._done[language, name].result()

    def _has(self, name: str) -> bool:
        return self._world.has_lite or SCENARIOS[name].kind != "LITE"

    def stop(self) -> None:
        """End the programs."""
        for program in self._programs.values():
            program.stop()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _client(self, language: str, name: str) -> Client:
        """A client with a topic and a group of its own."""
        topic = f"{language}_{name}"
        return Client(self._programs[language], self._world, topic, f"G_{topic}")


def _group(scenario: Scenario, topic: str) -> GroupSettings:
    return GroupSettings(
        retry_max_times=scenario.tries_max,
        consume_message_orderly=scenario.kind == "FIFO",
        attributes={BIND_TOPIC: topic} if scenario.kind == "LITE" else {},
    )


@pytest.fixture(
    scope="module",
    params=WORLDS if "SPROCKET_LONG" in os.environ else [OURS],
    ids=lambda kind: kind.name,
)
def runs(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Runs]:
    """The scenarios that this process was asked for, at one kind of servers."""
    asked = [
        (item.callspec.params["language"], item.callspec.params["name"])
        for item in request.session.items
        if isinstance(item, pytest.Function) and item.function is test_scenario
    ]
    with request.param.open(tmp_path_factory.mktemp("world")) as world:
        running = Runs(world, tmp_path_factory.mktemp("clients"), sorted(set(asked)))
        yield running
        running.stop()


@pytest.mark.parametrize(("language", "name"), ALL)
def test_scenario(runs: Runs, language: str, name: str) -> None:
    runs.check(language, name)
