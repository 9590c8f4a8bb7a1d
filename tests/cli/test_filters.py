"""`sprocket filter`."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sprocket.broker.config import BrokerConfig
from sprocket.client import blocking
from sprocket.filter.python import PythonFilter
from tests.cli.parts import Outcome, running_node, sprocket

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(
        sys.platform != "linux" or os.uname().machine not in ("x86_64", "aarch64"),
        reason="seccomp is Linux's, on x86_64 and arm64",
    ),
]
CHEAP = "def cheap(message):\n    return float(message.properties['amount']) < 5\n"
OF = ("--group", "billing", "--topic", "orders")


@pytest.fixture
def cheap(tmp_path: Path) -> Path:
    file = tmp_path / "cheap.py"
    file.write_text(CHEAP)
    return file


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    store = str(tmp_path_factory.mktemp("filters"))
    with running_node(store, BrokerConfig(port=0, filter_workers=2)) as address:
        yield address


def filters(names: str, *arguments: str) -> Outcome:
    return sprocket("filter", *arguments, "--nameserver", names)


def test_a_filter_is_checked_and_tried_without_a_broker(cheap: Path) -> None:
    done = sprocket("filter", "check", str(cheap))
    assert (done.code, done.lines) == (
        0, [f"{PythonFilter(CHEAP, 'cheap').expression}: valid (sandboxed by the kernel here)"],
    )  # fmt: skip
    done = sprocket("filter", "check", str(cheap), "--property", "amount=3")
    assert done.lines[1] == "the message matches"
    done = sprocket("filter", "check", str(cheap), "-p", "amount=7", "--json")
    assert json.loads(done.out)["wanted"] is False


@pytest.mark.parametrize(
    ("source", "more", "words"),
    [
        ("def cheap(message:", [], "line 1, column 10: '(' was never closed"),
        (CHEAP, ["--body", "x"], "line 2, column 18: KeyError: 'amount'"),
        (CHEAP, ["--name", "dear"], "defines no function 'dear'"),
        (CHEAP, ["--property", "amount"], "NAME=VALUE"),
        ("def cheap(m):\n while True: pass", ["--body", "x"], "was ended"),
    ],
)
def test_what_is_wrong_is_one_line(
    source: str, more: list[str], words: str, tmp_path: Path
) -> None:
    file = tmp_path / "cheap.py"
    file.write_text(source)
    done = sprocket("filter", "check", str(file), *more)
    assert done.code in (1, 2)
    assert words in done.err
    assert done.err.count("\n") == 1


def test_it_is_uploaded_listed_used_and_removed(names: str, cheap: Path) -> None:
    version = PythonFilter(CHEAP, "cheap").version
    done = filters(names, "upload", str(cheap), *OF)
    assert (done.code, done.lines) == (0, [f"broker-a: cheap@{version}"]), done.err
    for amount in ("3", "9"):
        sprocket("send", "orders", amount, "--property", f"amount={amount}", "--nameserver", names)
    with blocking.PullConsumer("billing", nameservers=names) as consumer:
        got = [
            message.body
            for queue in consumer.queues("orders")
            for message in consumer.pull(queue, 0, code=PythonFilter(None, "cheap")).messages
        ]
    assert got == [b"3"]
    (facts,) = map(json.loads, filters(names, "list", "--group", "billing", "--json").lines)
    assert (facts["version"], facts["judged"], facts["wanted"]) == (version, 2, 1)
    assert filters(names, "list").lines[1].split()[:4] == [
        "broker-a", "billing", "orders", f"cheap@{version}",
    ]  # fmt: skip
    assert filters(names, "remove", "cheap", *OF, "--yes").lines == ["broker-a: removed"]
    assert filters(names, "list").lines[1:] == []
    done = filters(names, "remove", "cheap", *OF, "--yes")
    assert done.code == 1
    assert "no broker has filter cheap" in done.err


def test_a_broker_that_takes_none_says_by_what(node: str, cheap: Path) -> None:
    done = filters(node, "upload", str(cheap), *OF)
    assert done.code == 2
    assert "filter_workers (filterServerNums) is 0" in done.err


def test_consume_takes_a_filter_in_a_file_or_one_that_was_uploaded(names: str, cheap: Path) -> None:
    for amount in (3, 7):
        sent = sprocket(
            "send", "gifts", f"cost {amount}", "--property", f"amount={amount}",
            "--nameserver", names,
        )  # fmt: skip
        assert sent.code == 0, sent.err

    def consume(*more: str) -> Outcome:
        done = sprocket("consume", "gifts", "--raw", *more, "--nameserver", names)
        assert done.code == 0, done.err
        return done

    assert consume("--end", "--code", str(cheap)).lines == ["cost 3"]
    grouped = ("--group", "gifted", "--count", "1")
    assert consume(*grouped, "--code", f"{cheap}:cheap").lines == ["cost 3"]
    dear = cheap.with_name("dear.py")
    dear.write_text(CHEAP.replace("cheap", "dear").replace("<", ">"))
    of = ("--group", "given", "--topic", "gifts")
    assert filters(names, "upload", str(dear), *of).code == 0
    assert consume("--group", "given", "--count", "1", "--code", "dear").lines == ["cost 7"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--code", "missing.py"), "--code missing.py: "),
        (("--code", "no name"), "a filter is named like its function, not 'no name'"),
        (("--code", "cheap", "--sql", "a > 5"), "by tags, by sql or by code"),
    ],
)
def test_what_consume_cannot_choose_by_is_one_line(
    names: str, options: tuple[str, ...], words: str
) -> None:
    done = sprocket("consume", "gifts", *options, "--nameserver", names)
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert words in done.err


def test_a_file_from_another_system_is_read_or_refused_in_one_line(tmp_path: Path) -> None:
    file = tmp_path / "cheap.py"
    source = "def cheap(message):\n    return True\n"
    file.write_bytes(source.replace("\n", "\r\n").encode("utf-8-sig"))
    assert sprocket("filter", "check", str(file)).code == 0
    file.write_bytes(b"# caf\xe9\n" + source.encode())
    outcome = sprocket("filter", "check", str(file))
    assert outcome.code == 2
    assert outcome.err == f"sprocket: {file}:1: byte 0xE9 is not UTF-8; save the file in UTF-8\n"
