"""Each command changes what it is told to, and nothing else."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
import typer.main

from sprocket.admin import acls, brokers, filters, groups, positions, topics, users
from sprocket.admin.caller import Caller
from sprocket.broker.config import BrokerConfig
from sprocket.cli.main import app
from sprocket.client import blocking
from sprocket.client.config import ConsumerConfig
from sprocket.message.message import StoredMessage
from sprocket.protocol.bodies import KvTable, RequestModes, TopicTable
from sprocket.protocol.requests.group import AllRequestModes
from sprocket.protocol.requests.route import KvList, PutKv
from sprocket.protocol.requests.topic import AllTopicConfigs, CreateTopic
from sprocket.remoting.pool import Pool
from tests.cli.parts import Outcome, commands, eventually, running_node, sprocket

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(
        sys.platform != "linux" or os.uname().machine not in ("x86_64", "aarch64"),
        reason="seccomp is Linux's, on x86_64 and arm64",
    ),
]

#: Commands that only show something, and those that no server sees, or that need other brokers.
READS = {
    "cluster status", "cluster members",
    "topic list", "topic show", "topic route", "topic status", "topic volume", "group list",
    "group lag", "group show", "group members", "group running", "group producers",
    "message waiting", "message find", "message show", "deadletters list", "filter check",
    "user list", "user show", "acl list", "acl show", "acl test",
    "audit show", "filter list", "config show", "config reference", "config check", "config get",
    "statictopic show",
    "config quotas",
}  # fmt: skip
ELSEWHERE = {
    "standalone", "nameserver", "broker", "proxy", "api", "mcp", "console",
    "store verify", "store dump", "store repair", "spark checkpoint show", "spark checkpoint set",
    "backup", "restore", "container list", "container resize",
    "cluster elect", "statictopic move", "statictopic finish",
    *(each for each in commands(typer.main.get_command(app)) if each.startswith("pipeline ")),
}  # fmt: skip


class Change(NamedTuple):
    """A command, and the beginnings of the names of what it may change.

    `{…}` in its words are names in `Prepared.ids`.
    """

    words: str
    changes: tuple[str, ...]


CHANGES = {
    "send": [Change("send orders hello", ("messages orders",))],
    "consume": [
        Change("consume orders --group reader --from first --count 2",
            ("group reader", "offset reader", "topic %RETRY%reader", "messages %RETRY%reader")),
    ],
    "topic create": [
        Change("topic create orders --permission r", ("topic orders perm",)),
        Change("topic create orders --queues 20",
            ("topic orders readQueueNums", "topic orders writeQueueNums", "messages orders")),
    ],
    "topic update": [
        Change("topic update orders --write-queues 10", ("topic orders writeQueueNums",)),
        Change("topic update orders --permission rw", ("topic orders perm",)),
        Change("topic update orders --message-type fifo", ("topic orders attributes",)),
        Change("topic update orders --no-attribute message.type", ("topic orders attributes",)),
        Change("topic update orders --read-queues 18",
            ("topic orders readQueueNums", "messages orders")),
    ],
    "topic delete": [Change("topic delete extra --yes", ("topic extra", "messages extra"))],
    "group create": [
        Change("group create billing --retries 4", ("group billing retryMaxTimes",)),
        Change("group create billing --unordered", ("group billing consumeMessageOrderly",)),
    ],
    "group update": [
        Change("group update billing --retry-queues 3", ("group billing retryQueueNums",)),
        Change("group update billing --disabled", ("group billing consumeEnable",)),
        Change("group update billing --enabled", ("group billing consumeEnable",)),
        Change("group update billing -a priority.factor=3", ("group billing attributes",)),
    ],
    "group mode": [Change("group mode orders billing POP", ("mode orders billing",))],
    "group delete": [Change("group delete spare --yes", ("group spare",))],
    "group reset": [
        Change("group reset billing orders --to first --yes",
            ("offset billing orders",)),
    ],
    "group clone": [
        Change("group clone billing copy --topic orders --yes",
            ("offset copy orders", "group copy")),
    ],
    "message resend": [Change("message resend {sent} --to other --yes", ("messages other",))],
    "message consume-directly": [Change("message consume-directly live {sent} --yes", ())],
    "message recall": [Change("message recall {handle}", ("messages rmq_sys_wheel_timer",))],
    "deadletters resend": [
        Change("deadletters resend live {dead} --yes", ("messages %RETRY%live", "offset live")),
    ],
    "filter upload": [
        Change("filter upload {file} --group billing --topic orders", ("filter cheap",)),
    ],
    "filter remove": [
        Change("filter remove cheap --group billing --topic orders --yes", ("filter cheap",)),
    ],
    "statictopic create": [
        Change("statictopic create fixed --broker broker-a --queues 4",
            ("topic fixed", "messages fixed")),
    ],
    "user create": [Change("user create eve --password-file {password}", ("user eve",))],
    "user update": [
        Change("user update ann --disabled", ("user ann status",)),
        Change("user update ann --kind Super", ("user ann kind",)),
        Change("user update ann --password-file {password}", ()),  # no broker shows it
    ],
    "user delete": [Change("user delete bob --yes", ("user bob", "acl bob"))],
    "acl grant": [
        Change("acl grant ann Topic:orders Sub", ("acl ann Custom Topic:orders",)),
        Change("acl grant ann Topic:orders Sub --deny --default",
            ("acl ann Default Topic:orders",)),
    ],
    "acl revoke": [
        Change("acl revoke ann Topic:orders Pub --yes", ("acl ann Custom Topic:orders",)),
        Change("acl revoke ann Group:* --yes", ("acl ann Custom Group:*",)),
    ],
    "acl import": [Change("acl import {accounts} --yes", ("user importer", "acl importer"))],
    "config set": [Change("config set fileReservedTime=71", ("setting fileReservedTime",))],
}  # fmt: skip


def test_each_command_is_known_to_change_something_or_not() -> None:
    every = set(commands(typer.main.get_command(app)))
    assert every == READS | ELSEWHERE | CHANGES.keys()


class Prepared(NamedTuple):
    """A node with something of each kind.

    Attributes:
        ids: by the names in `CHANGES`.
    """

    names: str
    ids: dict[str, str]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prepared]:
    folder = tmp_path_factory.mktemp("changes")
    file = folder / "cheap.py"
    file.write_text("def cheap(message):\n    return True\n")
    config = BrokerConfig(port=0, filter_workers=2)
    with running_node(str(folder / "store"), config) as names, Live(names) as dead:
        ids = {"file": str(file), **dead, **fill(names, folder), **accounts(names, folder)}
        yield Prepared(names, ids)


def done(names: str, *words: str) -> Outcome:
    outcome = sprocket(*words, "--nameserver", names)
    assert outcome.code == 0, (words, outcome.err)
    return outcome


def fill(names: str, folder: Path) -> dict[str, str]:
    """Makes topics, groups, offsets, a filter and a key; returns ids."""
    asyncio.run(asked(names, wide_topic))
    for words in (
        "topic create extra", "topic create other --queues 3", "group create spare",
        "group create billing --retries 7 --ordered --retry-queues 2 --no-broadcast",
        "group create ledger --retries 1", "send other x", "send orders a", "send orders b",
    ):  # fmt: skip
        done(names, *words.split())
    for topic in ("orders", "other"):
        for group in ("billing", "ledger"):
            done(names, *f"group reset {group} {topic} --to last --yes".split())
    other = folder / "dear.py"
    other.write_text("def dear(message):\n    return False\n")
    done(names, "filter", "upload", str(other), "--group", "ledger", "--topic", "orders")
    timed = json.loads(done(names, "send", "orders", "later", "--delay", "3000", "--json").out)
    return {"handle": timed["recall_handle"]}


def accounts(names: str, folder: Path) -> dict[str, str]:
    """Makes users with rights; returns the names of files."""
    password, plain = folder / "password", folder / "plain_acl.yml"
    password.write_text("secret")
    plain.write_text("accounts: [{accessKey: importer, secretKey: a-secret}]")
    for user in ("ann", "bob"):
        done(names, "user", "create", user, "--password-file", str(password))
        done(names, "acl", "grant", user, "Topic:orders", "Pub")
        done(names, "acl", "grant", user, "Group:*", "Sub")
    return {"password": str(password), "accounts": str(plain)}


async def wide_topic(caller: Caller) -> None:
    """A topic whose every setting differs from a new one's; its first queue has two messages."""
    address = (await caller.masters())["broker-a"]
    await caller.ask(
        address,
        CreateTopic(
            topic="orders", default_topic="TBW102", read_queue_nums=16, write_queue_nums=12, perm=6,
            topic_filter_type="MULTI_TAG", order=True, attributes="+message.type=DELAY",
        ),
    )  # fmt: skip
    await caller.ask_nameserver(PutKv(namespace="ORDER_TOPIC_CONFIG", key="orders", value="a:12"))
    await caller.ask_nameserver(PutKv(namespace="mine", key="k", value="v"))


class Live:
    """A member of the group `live`, which gives up one message and consumes what comes later."""

    def __init__(self, names: str) -> None:
        self._names = names
        self._consumer = blocking.PushConsumer(
            "live", nameservers=names, start="first", config=ConsumerConfig(concurrency=1)
        )

    def __enter__(self) -> dict[str, str]:
        from sprocket import Later

        seen: list[StoredMessage] = []

        def listen(message: StoredMessage) -> Later | None:
            seen.append(message)
            return Later(-1) if len(seen) == 1 else None

        done(self._names, "topic", "create", "lost", "--queues", "1")
        sent = json.loads(done(self._names, "send", "lost", "x", "--json").out)
        self._consumer.subscribe("lost", listener=listen)
        self._consumer.start()
        found: list[Any] = []

        def has_died() -> bool:
            found[:] = sprocket(
                "deadletters", "list", "live", "--json", "--nameserver", self._names
            ).lines
            return bool(found)

        eventually(has_died)
        eventually(lambda: self._committed() == 1)
        return {"sent": sent["offset_id"], "dead": json.loads(found[0])["offset_id"]}

    def _committed(self) -> int:
        rows = sprocket(
            "group", "lag", "live", "--topic", "lost", "--json", "-n", self._names
        ).lines
        return max((json.loads(row)["committed"] for row in rows), default=0)

    def __exit__(self, *_: object) -> None:
        self._consumer.close()


async def asked(names: str, question: Any) -> Any:
    async with Pool() as pool:
        return await question(Caller(pool, [names]))


async def everything(caller: Caller) -> dict[str, Any]:
    """All that servers keep, by a name for each."""
    found: dict[str, Any] = {}
    address = (await caller.masters())["broker-a"]
    table = TopicTable.decode((await caller.ask(address, AllTopicConfigs())).body)
    for name, topic in table.topic_config_table.items():
        for field, value in msgspec.to_builtins(topic).items():
            found[f"topic {name} {field}"] = value
    for name in await topics.names(caller, with_internal=True):
        if name.startswith(("rmq_sys_SYNC", "rmq_sys_REVIVE")):
            continue
        for queue in await topics.status(caller, name):
            found[f"messages {name} {queue.number}"] = queue.max_offset
    for group in await groups.names(caller):
        for settings in (await groups.settings(caller, group)).values():
            for field, value in msgspec.to_builtins(settings).items():
                found[f"group {group} {field}"] = value
        for lag in (await positions.lag(caller, group)).queues:
            # A queue without an offset is shown as 0. The member of `live` commits what was sent
            # back to it seconds later, while another command runs.
            if lag.committed and lag.topic != "%RETRY%live":
                found[f"offset {group} {lag.topic} {lag.number}"] = lag.committed
    for each in (await filters.listed(caller))["broker-a"]:
        found[f"filter {each.name} {each.group} {each.topic} {each.version}"] = each.is_newest
    modes = RequestModes.decode((await caller.ask(address, AllRequestModes())).body)
    for topic_name, by_group in modes.message_request_mode_map.items():
        for group, mode in by_group.items():
            found[f"mode {topic_name} {group}"] = msgspec.to_builtins(mode)
    for user in (await users.everybody(caller))["broker-a"]:
        found[f"user {user.username} kind"] = user.user_type
        found[f"user {user.username} status"] = user.user_status
    for user_name, policies in (await acls.all_policies(caller))["broker-a"].items():
        for entry in policies.entries:
            found[f"acl {user_name} {entry.kind} {entry.resource}"] = str(entry)
    for name, value in (await brokers.settings(caller))["broker-a"].items():
        found[f"setting {name}"] = value
    for space in ("ORDER_TOPIC_CONFIG", "mine"):
        reply = await caller.ask_nameserver(KvList(namespace=space))
        for name, value in KvTable.decode(reply.body).table.items():
            found[f"kv {space} {name}"] = value
    return found


@pytest.mark.parametrize(
    "change",
    [each for several in CHANGES.values() for each in several],
    ids=lambda each: each.words,
)
def test_a_command_changes_what_it_names_and_nothing_else(
    prepared: Prepared, change: Change
) -> None:
    if change.words.startswith("acl import"):
        pytest.importorskip("yaml", reason="plain_acl.yml is read with PyYAML")
    before = asyncio.run(asked(prepared.names, everything))
    done(prepared.names, *change.words.format(**prepared.ids).split())
    after = asyncio.run(asked(prepared.names, everything))
    changed = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    assert {name for name in changed if not name.startswith(change.changes or ("-",))} == set()
    assert bool(changed) is bool(change.changes)
