"""`--processes`: many brokers behind one command, as processes."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest

import sprocket
from sprocket.base.errors import UsageError
from sprocket.cli.containers import given_by, number
from tests.cli.parts import sprocket as command
from tests.cli.test_serve import end, first_line, refused, serving
from tests.support import LONGEST, run

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(not Path("/proc").is_dir(), reason="processes are found by /proc"),
]

NODE = ("standalone", "--nameserver-port", "0", "--grpc-port", "off", "--set", "container.port=0")


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + LONGEST
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def processes_of(parent: int) -> dict[str, int]:
    """The processes that another one started, by the name in their arguments."""
    path = Path(f"/proc/{parent}/task/{parent}/children")
    found = {}
    for each in path.read_text().split():
        words = Path(f"/proc/{each}/cmdline").read_bytes().decode().split("\0")
        if "--name" in words:  # not while the process is being made
            found[words[words.index("--name") + 1]] = int(each)
    return found


def free_ports(count: int) -> int:
    """A port from which on so many brokers find theirs."""
    while True:
        with socket.create_server(("127.0.0.1", 0)) as probe:
            port = int(probe.getsockname()[1])
        if 2_000 < port < 60_000 - 20 * count:
            return port


async def sent(nameserver: str, topic: str, count: int) -> set[str]:
    """Brokers that took messages."""
    async with sprocket.Producer("p", nameservers=nameserver) as producer:
        messages = [sprocket.Message(topic, b"%d" % number) for number in range(count)]
        return {(await producer.send(each)).queue.broker for each in messages}


async def received(nameserver: str, topic: str, count: int) -> list[int]:
    found: list[int] = []
    async with sprocket.LitePullConsumer("g", nameservers=nameserver, start="first") as consumer:
        consumer.subscribe(topic)
        while len(found) < count:
            found += [int(message.body) for message in await consumer.poll()]
        await consumer.poll(10)  # what was polled counts as consumed now
        await consumer.commit()
    return sorted(found)


def test_three_brokers_share_a_topic_and_one_that_is_killed_loses_nothing(tmp_path: Path) -> None:
    store = ("--store", str(tmp_path))
    ports = ("--broker-port", str(free_ports(3)))
    with serving(*NODE, *store, *ports, "--processes", "3") as parent:
        line = first_line(parent)
        nameserver = line.split("name server ")[1].split(",")[0]
        assert re.findall(r"broker-a-\d", line) == ["broker-a-0", "broker-a-1", "broker-a-2"]
        before = processes_of(parent.pid)
        assert set(before) == {"broker-a-0", "broker-a-1", "broker-a-2"}
        at_one = ("topic", "create", "orders", "--broker", "broker-a-1", "-n", nameserver)
        assert command(*at_one).code == 0
        assert run(sent(nameserver, "orders", 60)) == set(before)
        os.kill(before["broker-a-2"], signal.SIGKILL)
        until(
            lambda: processes_of(parent.pid).get("broker-a-2") not in (None, before["broker-a-2"])
        )
        until(lambda: command("cluster", "-n", nameserver).out.count("yes") == 3)
        run(sent(nameserver, "orders", 30))
        expected = sorted([*range(60), *range(30)])
        assert run(received(nameserver, "orders", 90)) == expected
        code, out, said = end(parent, signal.SIGTERM)
    assert (code, out) == (0, "")
    assert "broker-a-2 ended by SIGKILL, and is started again" in said
    assert not [path for path in tmp_path.rglob("abort") if path.is_file()]
    for words, answer in (
        (("--processes", "2"), "has 3 brokers, and 2 brokers are asked for"),
        ((), "has 3 brokers, each with messages: start them with --processes 3"),
    ):
        assert answer in refused(*NODE, *store, *ports, *words)


def test_a_console_is_served_over_all_of_them(tmp_path: Path) -> None:
    pytest.importorskip("nicegui", reason="the console needs the extra console")
    words = ("--broker-port", "0", "--processes", "2", "--store", str(tmp_path))
    with serving(*NODE, *words, "--console", "--console-port", "0") as parent:
        found = re.search(r", console (http://\S+/)$", first_line(parent).strip())
        assert found
        with urllib.request.urlopen(f"{found[1]}api/v1/brokers", timeout=LONGEST) as answer:
            assert sorted(set(re.findall(r"broker-a-\d", answer.read().decode()))) == [
                "broker-a-0",
                "broker-a-1",
            ]
        code, _, _ = end(parent, signal.SIGTERM)
    assert code == 0


def test_a_parent_that_is_killed_takes_its_brokers_with_it(tmp_path: Path) -> None:
    words = ("--broker-port", "0", "--processes", "2", "--store", str(tmp_path))
    with serving(*NODE, *words) as parent:
        first_line(parent)
        brokers = processes_of(parent.pid)
        assert len(brokers) == 2
        parent.kill()
        parent.wait()
        until(lambda: not any(Path(f"/proc/{each}/cmdline").exists() for each in brokers.values()))


def test_one_that_cannot_start_is_named_and_the_others_serve(tmp_path: Path) -> None:
    port = free_ports(2)
    words = ("--broker-port", str(port), "--processes", "2", "--store", str(tmp_path))
    with (
        socket.create_server(("127.0.0.1", port + 20)),
        serving(*NODE, *words, SPROCKET_LOG="json") as parent,
    ):
        assert "broker-a-1 does not run" in first_line(parent)
        code, _, said = end(parent, signal.SIGINT)
    assert code == 0
    lines = [json.loads(line) for line in said.splitlines()]
    [reason] = [each["message"] for each in lines if each["level"] == "ERROR"]
    assert reason.startswith("broker-a-1 cannot start, and is tried again: cannot listen at")


def test_settings_that_all_brokers_refuse_end_the_start_in_one_line(tmp_path: Path) -> None:
    words = ("--broker-port", "0", "--processes", "2", "--store", str(tmp_path))
    answer = refused(*NODE, *words, "--set-of", "7:store.flush=SYNC_FLUSH")
    assert "there is no broker 7 here" in answer


@pytest.mark.parametrize("text", ["0", "65", "many", "", "-1", "1.5", "٣"])
def test_a_number_of_processes_is_one(text: str) -> None:
    with pytest.raises(UsageError, match="--processes takes 1 to 64 or auto"):
        number(text)


@pytest.mark.parametrize("text", ["a", "a:b", "a=b", ":b=c"])
def test_a_setting_of_one_broker_names_both(text: str) -> None:
    with pytest.raises(UsageError, match=r"--set-of takes BROKER:PART.NAME=VALUE"):
        given_by(config=None, verbose=False, given=(), overrides={}, own=[text])


def test_what_a_command_line_says_becomes_texts() -> None:
    said = given_by(
        config=Path("b.conf"),
        verbose=True,
        given=["store.flush = SYNC_FLUSH"],
        overrides={"broker.port": 0, "broker.authentication": True, "broker.host": None},
        own=["1:broker.port=9", "b-2:store.flush=ASYNC_FLUSH"],
    )
    assert said.settings == {
        "store.flush": "SYNC_FLUSH", "broker.port": "0", "broker.authentication": "true",
    }  # fmt: skip
    assert said.own == {"1": {"broker.port": "9"}, "b-2": {"store.flush": "ASYNC_FLUSH"}}
    assert said.options == ("--config", os.path.abspath("b.conf"), "--verbose")


@pytest.mark.skipif(
    not os.environ.get("SPROCKET_LONG"), reason="three starts of processes: SPROCKET_LONG=1"
)
def test_a_single_broker_becomes_two_and_one_again_with_all_its_messages(tmp_path: Path) -> None:
    store = ("--store", str(tmp_path))
    node = (*NODE, *store, "--broker-port", str(free_ports(2)))
    resize = ("container", "resize", *store, "--yes", "--processes")
    with serving(*node) as single:
        nameserver = first_line(single).split("name server ")[1].split(",")[0]
        run(sent(nameserver, "orders", 10))
        assert "is in use: stop its brokers first" in command(*resize, "2").err
        assert end(single, signal.SIGTERM)[0] == 0
    assert "messages of a single broker" in refused(*node, "--processes", "2")
    grown = command(*resize, "2")
    assert "broker-a becomes broker 0: it keeps its name" in grown.out
    with serving(*node, "--processes", "2") as both:
        line = first_line(both)
        nameserver = line.split("name server ")[1].split(",")[0]
        assert re.findall(r"broker-a(?:-1)? 127", line) == ["broker-a 127", "broker-a-1 127"]
        until(lambda: "broker-a-1" in command("topic", "status", "orders", "-n", nameserver).out)
        assert run(sent(nameserver, "orders", 20)) == {"broker-a", "broker-a-1"}
        assert end(both, signal.SIGTERM)[0] == 0
    assert command(*resize, "1").code == 0
    with serving(*node, "--processes", "1") as leaving:
        nameserver = first_line(leaving).split("name server ")[1].split(",")[0]
        assert run(sent(nameserver, "orders", 4)) == {"broker-a"}
        expected = sorted([*range(10), *range(20), *range(4)])
        assert run(received(nameserver, "orders", 34)) == expected
        until(lambda: "nothing is left" in command("container", "list", *store).out)
        code, _, said = end(leaving, signal.SIGTERM)
    assert code == 0
    assert re.search(
        r"broker-a-1 takes no more messages; left in it: \d+ messages of topics that no", said
    )
    assert "broker-a-1 is removed; its folder 1 stays" in command(*resize, "1").out
    assert "broker-a-1" not in command("container", "list", *store).out


def test_a_folder_is_resized_only_as_it_says_and_when_asked(tmp_path: Path) -> None:
    store = ("--store", str(tmp_path))
    resize = ("container", "resize", *store, "--processes")
    assert "no broker yet" in command(*resize, "2").err
    (tmp_path / "commitlog").mkdir()
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "accounts.json").write_text("{}")
    said = command(*resize, "2", standard_input=b"n\n")
    assert (said.code, "broker-a-1 is added, empty" in said.out) == (1, True)
    assert "is no folder of several" in command("container", "list", *store).err
    assert command(*resize, "2", "--yes").code == 0
    assert (tmp_path / "1" / "config" / "accounts.json").read_text() == "{}"
    assert "nothing is to change" in command(*resize, "2", "--yes").err
    assert command(*resize, "1", "--yes").code == 0
    rows = command("container", "list", *store, "--json").out.splitlines()
    assert [json.loads(row)["state"] for row in rows] == ["serves", "leaves"]
    assert "messages remain in broker-a-1" in command(*resize, "1", "--yes").err
    assert command(*resize, "1", "--yes", "--force").code == 0
    assert (tmp_path / "1" / "config").is_dir()


def test_a_port_that_two_servers_would_have_is_refused_before_anything_starts(
    tmp_path: Path,
) -> None:
    words = ("--processes", "2", "--store", str(tmp_path))
    answer = refused("standalone", *words, "--nameserver-port", "21931", "--broker-port", "21911")
    assert "broker-a-1 and the name server would both listen at port 21931" in answer
    assert not list(tmp_path.iterdir())
