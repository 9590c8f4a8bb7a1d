"""RocketMQ's admin tool 5.3.3, unmodified: all of its commands at our servers.

The table of the guide is made from what the commands did. `SPROCKET_RECORD=1` writes it.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import typer

from sprocket.cli import main
from sprocket.client import blocking
from sprocket.client.config import ConsumerConfig
from sprocket.message.message import Message
from sprocket.message.queue import QueueId
from tests.compat.javaland import JavaAdmin, JavaController, mqadmin, require_java, wait_until
from tests.compat.mqadmin_cases import AT_NAME_SERVER, CASES, Case
from tests.compat.sprocketland import Settings, SprocketBroker, SprocketNode
from tests.support import PATIENT_MS

pytestmark = pytest.mark.java

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "mqadmin.md"
MARKS = (
    "<!-- The table is made by tests/compat/test_java_every_command.py. -->\n",
    "\n<!-- End. -->",
)
#: Seconds that one run may take on a busy machine.
RUN_S = 240.0
#: Seconds within which what was done can be seen.
SEEN_S = 60.0
REASON = re.compile(r"DESC: +(?:request type \d+ not supported: )?(.*?)(?: BROKER: [\d.:]+)?\s*\n")


SENT = re.compile(r"SEND_OK +(\w+)")
PROGRESS = Case("consumerProgress -g G", "")
SENDING = next(case for case in CASES if case.command == "sendMessage")
IN_SYNC = Case("getSyncStateSet -a {controller} -b broker-g", "")


class Verdict(NamedTuple):
    """What became of a run: it works, or it is refused for a reason."""

    works: bool
    reason: str
    printed: str


def verdict(case: Case, printed: str) -> Verdict:
    """What a run came to, from what was printed.

    An endless command has been interrupted, which it prints too.
    """
    failed = "Exception" in printed and not case.is_endless
    reason = REASON.search(printed)
    return Verdict(not failed, reason[1] if failed and reason is not None else "", printed)


class World:
    """A node, a group of two brokers that RocketMQ's controller leads, a producer, a consumer."""

    def __init__(self, work: Path, opened: ExitStack) -> None:
        self.work = work
        self.controller = JavaController(work, settings={"scanNotActiveBrokerInterval": 1_000})
        self.node = SprocketNode(work, settings={"broker.trace_topic": True}, grpc=True)
        opened.enter_context(self.controller)
        opened.enter_context(self.node)
        grouped: Settings = {
            "broker.cluster": "Grouped",
            "broker.elector": f"controller://{self.controller.address}",
            "broker.copies_min": 1,
        }
        self.members = [
            SprocketBroker(work / each, self.node.names, name="broker-g", settings=grouped)
            for each in "ab"
        ]
        for member in self.members:
            opened.enter_context(member)
        # The tool writes files where it runs, and where the system keeps passing ones.
        self.tool = JavaAdmin(work, properties={"java.io.tmpdir": str(work)})
        opened.enter_context(self.tool)
        self.places = {
            "broker": self.node.address,
            "names": self.node.names,
            "controller": self.controller.address,
            "folder": str(work),
            "log": str(self.node.store / "commitlog" / f"{0:020d}"),
        }

    def run(self, case: Case) -> str:
        """What a command prints."""
        words = [self.put(word) for word in case.words.split()]
        where = ["-n", self.node.names] if case.knows_names else []
        until = self.put(case.prints) if case.is_endless else None
        return self.tool.run(*words, *where, within=RUN_S, until=until)

    def put(self, text: str) -> str:
        """A text with its places."""
        for name, value in self.places.items():
            text = text.replace(f"{{{name}}}", value)
        return text

    def prepare(self, opened: ExitStack) -> None:
        """Sends messages, which a group consumes; finds who leads the other group."""
        (self.work / "topics.json").write_text(
            json.dumps(
                [{"topicName": "Listed", "readQueueNums": 2, "writeQueueNums": 2, "perm": 6}]
            )
        )
        (self.work / "groups.json").write_text(json.dumps([{"groupName": "Listed"}]))
        (self.work / "broker.conf").write_text("brokerName=broker-c\n")
        names = self.node.names
        self.run(CASES[0])
        producer = opened.enter_context(blocking.Producer("P", nameservers=names))
        first = producer.send(
            Message("T", b"first", keys=["key-1"], tag="A"), queue=QueueId("T", "broker-a", 0)
        )
        for _ in range(5):
            producer.send(Message("T", b"more"), queue=QueueId("T", "broker-a", 1))
        config = ConsumerConfig(call_timeout_ms=PATIENT_MS, commit_ms=200)
        consumer = blocking.PushConsumer("G", nameservers=names, start="first", config=config)
        seen: list[object] = []
        consumer.subscribe("T", listener=seen.append)
        opened.enter_context(consumer)
        self.places |= {"message": first.message_id, "offset": first.offset_id}
        wait_until(lambda: len(seen) == 6)
        wait_until(lambda: re.search(r"T +broker-a +1 +5 +5 ", self.run(PROGRESS)))
        assert consumer.client_id is not None
        self.places["member"] = consumer.client_id
        wait_until(self.has_leader)

    def has_leader(self) -> bool:
        """Whether both members of the group are in sync; remembers who leads."""
        shown = self.run(IN_SYNC)
        leader = re.search(r"#MasterAddr\t(\S+)", shown)
        if leader is None or len(re.findall("(?m)^InSyncReplica:", shown)) < len(self.members):
            return False
        (follower,) = (each for each in self.members if each.address != leader[1])
        number = (follower.store / "brokerIdentity").read_text().rpartition("#")[2]
        self.places |= {"leader": leader[1], "follower": follower.address, "number": number}
        return True

    def judge(self, case: Case) -> Verdict:
        """Runs a command until it prints what it should, or for too long."""
        found = self.tried(case)
        if "{traced}" in case.words and not is_as_expected(case, found, self.put(case.prints)):
            self.tried(SENDING)  # the tool that sent the other may have ended before its trace went
            found = self.tried(case)
        return found

    def tried(self, case: Case) -> Verdict:
        """Runs a command; again for a while, if it does not print what it should: what was done a
        moment ago may take time to be seen."""
        until = time.monotonic() + SEEN_S
        while True:
            found = verdict(case, self.run(case))
            if case.command == "sendMessage" and (sent := SENT.search(found.printed)):
                self.places["traced"] = sent[1]
            if is_as_expected(case, found, self.put(case.prints)) or time.monotonic() > until:
                return found
            time.sleep(0.2)


def is_as_expected(case: Case, found: Verdict, prints: str) -> bool:
    """Whether a run did what its case says."""
    if case.is_refused:
        return not found.works and re.search(prints, found.reason) is not None
    return found.works and re.search(prints, found.printed) is not None


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    require_java()
    with ExitStack() as opened:
        made = World(tmp_path_factory.mktemp("tool"), opened)
        made.prepare(opened)
        yield made


def test_every_command_is_tried() -> None:
    listed = set(re.findall(r"(?m)^   (\w+) ", mqadmin()))
    assert len(listed) == 89
    assert listed == {case.command for case in CASES}


def test_what_is_said_to_be_our_own_is_there() -> None:
    app = typer.main.get_command(main.app)
    for words in {case.ours for case in CASES if case.ours and case.ours[0] not in "`["}:
        found: Any = app
        for word in words.split():
            if word.startswith("--"):
                assert any(word in each.opts for each in found.params), words
            elif hasattr(found, "commands"):
                assert word in found.commands, words
                found = found.commands[word]


def test_each_command_works_or_is_refused_for_a_reason(world: World) -> None:
    verdicts = {case: world.judge(case) for case in (*CASES, *AT_NAME_SERVER)}
    wrong = [
        f"{case.words}\n{found.printed[:1500]}"
        for case, found in verdicts.items()
        if not is_as_expected(case, found, world.put(case.prints))
    ]
    assert not wrong, "\n\n".join(wrong)
    connected = Case("consumerConnection -g __MONITOR_CONSUMER", "JAVA +V5_3_3")
    assert world.judge(connected).works  # what `startMonitoring` started
    table = "".join(f"{line}\n" for line in rows(verdicts))
    page = PAGE.read_text()
    before, _, rest = page.partition(MARKS[0])
    written, _, after = rest.partition(MARKS[1])
    if "SPROCKET_RECORD" in os.environ:
        PAGE.write_text(f"{before}{MARKS[0]}{table}{MARKS[1]}{after}")
    else:
        assert written == table, "SPROCKET_RECORD=1 writes the table anew"


def rows(verdicts: Mapping[Case, Verdict]) -> Iterator[str]:
    """The table of the guide: a row for each command, by what its runs came to."""
    yield "| Command | | Remarks | Sprocket's own |"
    yield "|---|---|---|---|"
    runs: dict[str, list[Case]] = {}
    for case in verdicts:
        runs.setdefault(case.command, []).append(case)
    for name, cases in sorted(runs.items(), key=lambda each: each[0].lower()):
        works = any(verdicts[case].works for case in cases)
        remarks = dict.fromkeys(
            remark for case in cases for remark in (_reason(case, verdicts[case], works), case.note)
        )
        own = next((case.ours for case in cases if case.ours), "")
        own = own if not own or own[0] in "`[" else f"`sprocket {own}`"
        local = all(case.is_local for case in cases)
        word = "local" if local else "works" if works else "refused"
        yield f"| `{name}` | {word} | {'; '.join(filter(None, remarks))} | {own} |"


def _reason(case: Case, found: Verdict, works: bool) -> str:
    """Why a run was refused; where, if another one of the command works."""
    if found.works:
        return ""
    where = "at our name server: " if case in AT_NAME_SERVER else "else: " if works else ""
    return f"{where}{found.reason.strip()}"
