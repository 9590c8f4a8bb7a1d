"""`sprocket consume`."""

from __future__ import annotations

import json
import signal
import subprocess
import sys

import pytest

from tests.cli.parts import Outcome, sprocket
from tests.support import LONGEST


def consume(node: str, *arguments: str) -> Outcome:
    return sprocket("consume", *arguments, "--nameserver", node)


def fill(node: str, topic: str, count: int) -> None:
    lines = b"\n".join(b"%d" % number for number in range(count))
    outcome = sprocket("send", topic, "--tag", "new", "--nameserver", node, standard_input=lines)
    assert outcome.code == 0, outcome.err


def test_messages_are_printed_one_a_line(node: str) -> None:
    fill(node, "read-lines", 20)
    outcome = consume(node, "read-lines", "--count", "20")
    assert outcome.code == 0
    assert len(outcome.lines) == 20
    assert {line.split()[-1] for line in outcome.lines} == {str(number) for number in range(20)}
    assert all(" [new] " in line for line in outcome.lines)


def test_reading_to_the_end_stops_there_and_commits_nothing(node: str) -> None:
    fill(node, "read-end", 50)
    for _ in range(2):
        assert len(consume(node, "read-end", "--end", "--json").lines) == 50
    assert consume(node, "read-end", "--end", "--from", "last").lines == []
    assert len(consume(node, "read-end", "--end", "--from", "1h").lines) == 50
    assert len(consume(node, "read-end", "--end", "--raw", "--tags", "new || old").lines) == 50
    assert consume(node, "read-end", "--end", "--tags", "old").lines == []


def test_a_condition_chooses_and_a_wrong_one_is_pointed_at(node: str) -> None:
    for amount in (3, 7):
        sprocket(
            "send", "read-sql", f"cost {amount}", "--property", f"amount={amount}",
            "--nameserver", node,
        )  # fmt: skip
    assert consume(node, "read-sql", "--end", "--raw", "--sql", "amount > 5").lines == ["cost 7"]
    grouped = consume(node, "read-sql", "-g", "sql", "-c", "1", "--raw", "--sql", "amount < 5")
    assert grouped.lines == ["cost 3"]
    wrong = consume(node, "read-sql", "--sql", "amount >")
    assert wrong.code == 2
    assert "column 9" in wrong.err
    both = consume(node, "read-sql", "--sql", "amount > 5", "--tags", "new")
    assert (both.code, "by tags, by sql or by code" in both.err) == (2, True)


def test_a_group_may_pop(node: str) -> None:
    fill(node, "read-popped", 20)
    first = consume(node, "read-popped", "--group", "poppers", "--pop", "-c", "8", "--raw")
    second = consume(node, "read-popped", "--group", "poppers", "--pop", "-c", "12", "--raw")
    assert len({*first.lines, *second.lines}) == 20


def test_a_group_goes_on_where_it_stopped(node: str) -> None:
    fill(node, "read-group", 30)
    first = consume(node, "read-group", "--group", "readers", "--count", "12", "--raw")
    second = consume(node, "read-group", "--group", "readers", "--count", "18", "--raw")
    assert len(first.lines) == 12
    assert set(first.lines) | set(second.lines) == {str(number) for number in range(30)}


def test_what_would_steer_a_terminal_is_shown_as_text(node: str) -> None:
    sprocket("send", "read-odd", "a\x1b[31m\nb", "--nameserver", node)
    (line,) = consume(node, "read-odd", "--count", "1").lines
    assert line.endswith("a\\x1b[31m\\nb")


def test_json_has_all_that_is_known(node: str) -> None:
    sprocket("send", "read-json", "x", "--key", "k", "--nameserver", node)
    message = json.loads(consume(node, "read-json", "--count", "1", "--json").out)
    assert message["topic"] == "read-json"
    assert message["keys"] == ["k"]
    assert message["properties"]["UNIQ_KEY"] == message["message_id"]
    assert message["stored_ms"] >= message["born_ms"] > 0


@pytest.mark.parametrize(
    ("arguments", "code", "complaint"),
    [
        (("no-such-topic", "--end"), 1, "no-such-topic"),
        (("t", "--from", "yesterday"), 2, "a time is first, last, like"),
        (("t", "--tags", "||"), 1, "'||' names no tag"),
        (("t", "--group", "g", "--end"), 2, "--end cannot be used with --group"),
        (("t", "--pop"), 2, "--pop needs --group"),
    ],
)
def test_what_cannot_be_consumed_is_one_line(
    node: str, arguments: tuple[str, ...], code: int, complaint: str
) -> None:
    outcome = consume(node, *arguments)
    assert outcome.code == code
    assert complaint in outcome.err
    assert outcome.err.count("\n") == 1


@pytest.mark.process
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 0)])
@pytest.mark.parametrize("group", [(), ("--group", "stopped")])
def test_a_signal_ends_it_in_order(
    node: str, number: int, code: int, group: tuple[str, ...]
) -> None:
    fill(node, "read-on", 1)
    command = ["consume", "read-on", "--nameserver", node, *group]
    with subprocess.Popen(
        [sys.executable, "-m", "sprocket", *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline()
        process.send_signal(number)
        _, err = process.communicate(timeout=LONGEST)
        assert (process.returncode, err) == (code, "")


@pytest.mark.process
def test_a_reader_of_its_output_that_goes_away_ends_it_without_a_word(node: str) -> None:
    fill(node, "read-cut", 40)
    with subprocess.Popen(
        [sys.executable, "-m", "sprocket", "consume", "read-cut", "--end", "--nameserver", node],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == ""
        assert process.wait(LONGEST) == 1
