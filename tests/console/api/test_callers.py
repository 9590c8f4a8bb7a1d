"""Callers are known by a token or a signature of the file, and by nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from sprocket.base.errors import ConfigError
from sprocket.console.api import signatures
from sprocket.console.api.callers import (
    ANYBODY,
    CallerEntry,
    KnownCallers,
    is_of_this_machine,
    origins_fault,
)
from sprocket.console.api.problems import ApiRefusal
from sprocket.console.api.signatures import SignedRequest

TOKEN = "a-token-that-nobody-guesses"
REQUEST = SignedRequest("GET", "/api/v1/topics", b"")
NOW = 1_700_000_000_000

FILE = f"""
[[caller]]
name = "reader"
token = "{TOKEN}"

[[caller]]
name = "ann"
access_key = "ann"
secret_key = "ann's"
may_change = true
"""


@pytest.fixture
def known(tmp_path: Path) -> KnownCallers:
    path = tmp_path / "callers.toml"
    path.write_text(FILE)
    path.chmod(0o600)
    return KnownCallers.of_file(path)


def signed(secret: str = "ann's", now_ms: int = NOW, user: str = "ann") -> str:
    return signatures.authorization(REQUEST, user, secret, now_ms)


def test_a_caller_is_who_the_file_says(known: KnownCallers) -> None:
    reader = known.caller(f"Bearer {TOKEN}", REQUEST, NOW)
    assert (reader.name, reader.signer, reader.may_change) == ("reader", None, False)
    ann = known.caller(signed(), REQUEST, NOW)
    assert ann.signer is not None
    assert (ann.name, ann.signer.access_key, ann.may_change) == ("ann", "ann", True)
    assert "ann's" not in repr(ann)


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "Bearer",
        "Bearer wrong",
        f"Basic {TOKEN}",
        f"Bearer {TOKEN}x",
        signatures.SCHEME,
        signed("guessed"),
        signed(user="reader"),
        signed(now_ms=NOW - signatures.VALID_MS - 1),
        signed(now_ms=NOW + signatures.VALID_MS + 1),
        "Bearer \udcff",
    ],
)
def test_nobody_else_is_a_caller(known: KnownCallers, header: str | None) -> None:
    with pytest.raises(ApiRefusal) as refusal:
        known.caller(header, REQUEST, NOW)
    assert refusal.value.status == 401
    assert TOKEN not in str(refusal.value)


def test_a_signature_counts_once_as_long_as_it_is_valid(known: KnownCallers) -> None:
    header = signed()
    known.caller(header, REQUEST, NOW)
    for later in (0, signatures.VALID_MS):
        with pytest.raises(ApiRefusal, match="has been used"):
            known.caller(header, REQUEST, NOW + later)
    known.caller(signed(now_ms=NOW + 1), REQUEST, NOW)
    with pytest.raises(ApiRefusal, match="too old"):
        known.caller(header, REQUEST, NOW + 3 * signatures.VALID_MS)


def test_without_a_file_everybody_is_anybody_and_no_secret_helps() -> None:
    known = KnownCallers.of_file(None)
    assert known.caller(None, REQUEST, NOW) == ANYBODY
    assert ANYBODY.signer is None
    with pytest.raises(ApiRefusal, match="no callers are known"):
        known.caller(f"Bearer {TOKEN}", REQUEST, NOW)


@pytest.mark.parametrize(
    ("entries", "said"),
    [
        ([CallerEntry(name="a")], "neither token nor access_key"),
        ([CallerEntry(name="a", token="short")], "could guess"),
        ([CallerEntry(name="a", token=TOKEN), CallerEntry(name="b", token=TOKEN)], "another one"),
        ([CallerEntry(name="a", access_key="k")], "needs its secret key"),
        (
            [CallerEntry(name=name, access_key="k", secret_key="s") for name in "ab"],
            "access key of another one",
        ),
    ],
)
def test_a_file_that_cannot_be_right_is_refused(entries: list[CallerEntry], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        KnownCallers(entries)


@pytest.mark.parametrize(
    "content", [b"\xff", b"x", b"[[caller]]\nname=1", b"[[caller]]\nname='a'\nsecret='b'", b""]
)
def test_a_file_that_is_none_is_refused_without_showing_it(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "callers.toml"
    path.write_bytes(content)
    path.chmod(0o600)
    with pytest.raises(ConfigError, match=r"callers\.toml"):
        KnownCallers.of_file(path)


def test_a_file_that_others_may_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "callers.toml"
    path.write_text(FILE)
    path.chmod(0o640)
    with pytest.raises(ConfigError, match="chmod 600"):
        KnownCallers.of_file(path)
    with pytest.raises(ConfigError, match="cannot read"):
        KnownCallers.of_file(tmp_path / "missing")


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1", "localhost"])
def test_addresses_of_this_machine(host: str) -> None:
    assert is_of_this_machine(host)
    assert not is_of_this_machine(f"x{host}")


@pytest.mark.parametrize(
    ("headers", "is_refused"),
    [
        ([], False),
        ([("origin", "http://localhost:8088")], False),
        ([("sec-fetch-site", "same-origin"), ("origin", "https://localhost:8088")], False),
        ([("sec-fetch-site", "none")], False),
        ([("sec-fetch-site", "cross-site")], True),
        ([("sec-fetch-site", "same-site")], True),
        ([("origin", "http://evil.example")], True),
        ([("origin", "http://localhost:9999")], True),
        ([("origin", "null")], True),
    ],
)
def test_pages_of_other_sites_are_told_apart(
    headers: list[tuple[str, str]], is_refused: bool
) -> None:
    assert (origins_fault(headers, "localhost:8088") is not None) is is_refused
