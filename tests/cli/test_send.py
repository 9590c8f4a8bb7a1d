"""`sprocket send`."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from tests.cli.parts import Outcome, sprocket


def send(node: str, *arguments: str, standard_input: bytes = b"") -> Outcome:
    return sprocket("send", *arguments, "--nameserver", node, standard_input=standard_input)


def received(node: str, topic: str) -> list[dict[str, object]]:
    outcome = sprocket("consume", topic, "--end", "--json", "--nameserver", node)
    assert outcome.code == 0, outcome.err
    return [json.loads(line) for line in outcome.lines]


def test_an_argument_is_sent_with_tag_keys_and_properties(node: str) -> None:
    outcome = send(
        node, "sent-one", "one café", "--tag", "new", "--key", "o-1", "--key", "o-2",
        "--property", "shop=7", "--property", "note=a=b",
    )  # fmt: skip
    assert outcome.code == 0
    assert outcome.out.startswith("OK sent-one@broker-a:")
    (message,) = received(node, "sent-one")
    assert (message["body"], message["tag"], message["keys"]) == ("one café", "new", ["o-1", "o-2"])
    properties = message["properties"]
    assert isinstance(properties, dict)
    assert (properties["shop"], properties["note"]) == ("7", "a=b")


def test_a_file_is_one_message_and_the_result_can_be_json(node: str, tmp_path: Path) -> None:
    file = tmp_path / "cup.jpg"
    file.write_bytes(bytes(range(256)))
    outcome = send(node, "sent-file", "--file", str(file), "--json")
    result = json.loads(outcome.out)
    assert (result["topic"], result["status"], result["queue_offset"]) == ("sent-file", "OK", 0)
    (message,) = received(node, "sent-file")
    assert "body" not in message
    assert base64.b64decode(str(message["body_base64"])) == file.read_bytes()


def test_each_line_of_standard_input_is_a_message(node: str) -> None:
    lines = b"\n".join(b"order %d" % number for number in range(600))
    outcome = send(node, "sent-lines", standard_input=b"\r\n" + lines)
    assert (outcome.code, outcome.out) == (0, "sent 600 messages\n")
    assert {message["body"] for message in received(node, "sent-lines")} == {
        f"order {number}" for number in range(600)
    }
    outcome = send(node, "sent-lines", "--json", standard_input=b"x\ny\n")
    assert [json.loads(line)["status"] for line in outcome.lines] == ["OK", "OK"]


def test_nothing_on_standard_input_is_no_message(node: str) -> None:
    assert send(node, "sent-none").out == "sent 0 messages\n"


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("a.b", "x"), "illegal characters"),
        (("t", "x", "--file", "/dev/null"), "give BODY or --file, not both"),
        (("t", "x", "--property", "novalue"), "--property takes NAME=VALUE, not 'novalue'"),
        (("t", "x", "--property", "TAGS=forged"), "TAGS"),
        (("t", "x", "--group", "no spaces"), "illegal characters"),
    ],
)
def test_what_cannot_be_sent_is_one_line(
    node: str, arguments: tuple[str, ...], complaint: str
) -> None:
    outcome = send(node, *arguments)
    assert outcome.code == 2
    assert complaint in outcome.err
    assert outcome.err.count("\n") == 1


@pytest.mark.parametrize(
    ("address", "hint"),
    [
        ("http://h:9876", " without a scheme, so perhaps 'h:9876'"),
        ("h:99999", " with a port from 1 to 65535"),
        ("h", ", so perhaps 'h:9876'"),
    ],
)
def test_an_address_that_cannot_be_is_told_before_it_is_asked(address: str, hint: str) -> None:
    outcome = sprocket("send", "t", "x", "--nameserver", address)
    assert outcome.code == 2
    assert outcome.err == f"sprocket: a name server is host:port{hint}, not {address!r}\n"


def test_a_line_that_fails_ends_it(node: str) -> None:
    outcome = send(node, "sent-huge", standard_input=b"fine\n" + b"x" * (9 << 20))
    assert outcome.code == 2
    assert "a line has more than" in outcome.err
    assert outcome.err.count("\n") == 1


def test_the_queue_is_chosen_by_number_or_by_key(node: str) -> None:
    def sent(*how: str) -> list[int]:
        lines = sprocket("send", "queued", "x", *how, "--json", "--nameserver", node).lines
        return [json.loads(line)["queue"] for line in lines]

    sprocket("topic", "create", "queued", "--queues", "8", "--nameserver", node)
    assert [*sent("--queue", "broker-a:5"), *sent("--queue", "broker-a:2")] == [5, 2]
    assert sent("--order-key", "o-1") == sent("--order-key", "o-1")
    for wrong in (
        ("--queue", "5"),
        ("--queue", "broker-a:9"),
        ("--queue", "a:1", "--order-key", "k"),
    ):
        assert sprocket("send", "queued", "x", *wrong, "--nameserver", node).code == 2
