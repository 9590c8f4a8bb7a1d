"""`sprocket consume --decode`: bodies decoded; those that do not fit are there as they are."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("fastavro")

from sprocket.base.errors import UsageError
from sprocket.cli.decoding import codec_of, decoding, registry_of
from sprocket.schemas.avro_bodies import AvroBodies
from sprocket.schemas.framing import join
from sprocket.schemas.http_registry import RegistryAccess
from tests.cli.parts import Outcome, sprocket
from tests.schemas.parts import AVRO_ORDER, ORDER, order_set


def consume(node: str, *arguments: str, **environment: str) -> Outcome:
    return sprocket("consume", *arguments, "--end", "--nameserver", node, **environment)


def send(node: str, topic: str, path: Path, body: bytes) -> None:
    path.write_bytes(body)
    outcome = sprocket("send", topic, "--file", str(path), "--nameserver", node)
    assert outcome.code == 0, outcome.err


@pytest.fixture
def topic(node: str, tmp_path: Path) -> str:
    """A topic with an order in Avro with a number in front, and a body that is none."""
    name = f"decode-{tmp_path.name}"[:60]
    (tmp_path / "7.avsc").write_text(AVRO_ORDER)
    body = AvroBodies(AVRO_ORDER).encode(ORDER)
    send(node, name, tmp_path / "body", join(7, body))
    send(node, name, tmp_path / "body", b"plain")
    return name


def test_bodies_are_shown_decoded_and_others_with_the_reason(
    node: str, topic: str, tmp_path: Path
) -> None:
    shown = consume(node, topic, "--registry", str(tmp_path), "--json")
    assert shown.code == 0
    found = sorted(map(json.loads, shown.lines), key=lambda each: "value" in each)
    assert found[1]["value"] == ORDER
    assert "body" not in found[1]
    assert found[0]["body"] == "plain"
    assert "byte 112" in found[0]["value_error"]
    assert shown.err == "1 of 2 bodies do not fit\n"


def test_lines_and_raw_bodies_are_decoded_too(node: str, topic: str, tmp_path: Path) -> None:
    registry = ("--registry", str(tmp_path))
    lines = sorted(consume(node, topic, "--decode", "auto", *registry, "--raw").lines)
    assert json.loads(lines[1]) == ORDER
    assert lines[0] == "plain"
    texts = consume(node, topic, "--decode", "avro", *registry).out
    assert '{"id":"o-1"' in texts
    assert "byte 112, not 0" in texts


def test_a_schema_of_a_file_needs_no_registry(node: str, tmp_path: Path) -> None:
    name = f"decode-file-{tmp_path.name}"[:60]
    (tmp_path / "order.desc").write_bytes(order_set())
    send(node, name, tmp_path / "body", b"\x0a\x03o-1")
    shown = consume(
        node, name, "--decode", "protobuf", "--schema", str(tmp_path / "order.desc"),
        "--message", "shop.Order", "--json",
    )  # fmt: skip
    assert json.loads(shown.out)["value"]["id"] == "o-1"


def test_json_is_checked_by_a_schema(node: str, tmp_path: Path) -> None:
    pytest.importorskip("jsonschema")
    name = f"decode-json-{tmp_path.name}"[:60]
    (tmp_path / "order.json").write_text('{"required": ["id"]}')
    send(node, name, tmp_path / "body", b'{"id":"o-1"}')
    send(node, name, tmp_path / "body", b'{"it":"o-2"}')
    schema = ("--decode", "json", "--schema", str(tmp_path / "order.json"))
    shown = consume(node, name, *schema, "--json")
    good, bad = sorted(map(json.loads, shown.lines), key=lambda each: "value_error" in each)
    assert good["value"] == {"id": "o-1"}
    assert bad["body"] == '{"it":"o-2"}'
    assert bad["value_error"] == "it does not fit the schema at $: 'id' is a required property"
    assert shown.err == "1 of 2 bodies do not fit\n"


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (("--schema", "x"), "go with --decode"),
        (("--decode", "auto"), "needs --registry"),
        (("--decode", "xml"), "no format"),
        (("--decode", "avro"), "needs a schema"),
        (("--registry", "nowhere"), "neither a URL nor a folder"),
        (("--registry", "ftp://x"), "no URL"),
    ],
)
def test_what_cannot_be_decoded_is_one_line(node: str, given: tuple[str, ...], reason: str) -> None:
    outcome = consume(node, "any", *given)
    assert (outcome.code, outcome.err.count("\n")) == (2, 1)
    assert reason in outcome.err


def test_a_registry_that_does_not_answer_ends_it(node: str, topic: str) -> None:
    outcome = consume(node, topic, "--registry", "http://127.0.0.1:1")
    assert outcome.code == 1
    assert "the registry http://127.0.0.1:1 does not answer" in outcome.err


def test_secrets_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPROCKET_REGISTRY_USER", "u")
    monkeypatch.setenv("SPROCKET_REGISTRY_PASSWORD", "hidden")
    access = registry_of("https://registry.example")
    assert access == RegistryAccess("https://registry.example", user="u", password="hidden")
    assert "hidden" not in repr(access)


def test_the_registry_of_a_profile_is_called_so(node: str, topic: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="goes with --profile"):
        registry_of("profile")
    file = tmp_path / "sprocket.toml"
    file.write_text("[profile.here]\nregistry = 'http://127.0.0.1:1'\nregistry_token = 'hidden'\n")
    file.chmod(0o600)
    by_profile = ("--profile", "here", "--registry", "profile")
    outcome = consume(node, topic, *by_profile, SPROCKET_CONFIG=str(file))
    assert "the registry http://127.0.0.1:1 does not answer" in outcome.err
    assert "hidden" not in outcome.err


def test_nothing_is_decoded_unless_it_was_asked_for() -> None:
    assert decoding(None, None, None, None) is None
    assert codec_of(None) is None
    with pytest.raises(UsageError):
        codec_of("/nowhere")
