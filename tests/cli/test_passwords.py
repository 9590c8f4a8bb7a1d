"""Passwords come from a file, standard input or a variable, and from no argument."""

from __future__ import annotations

from pathlib import Path

import pytest

from sprocket.base.errors import UsageError
from sprocket.cli.passwords import closing_settings
from tests.cli.parts import sprocket

NOBODY = ("--nameserver", "127.0.0.1:1")


def create(*arguments: str, standard_input: bytes = b"", **environment: str) -> str:
    outcome = sprocket(
        "user", "create", "ann", *arguments, *NOBODY, standard_input=standard_input, **environment
    )
    assert outcome.code in (1, 2)
    return outcome.err


def test_without_one_it_says_where_to_give_it() -> None:
    told = create()
    assert "--password-file FILE" in told
    assert "SPROCKET_USER_PASSWORD" in told


def test_a_file_a_variable_or_standard_input_has_it(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_bytes(b"\xef\xbb\xbfsecret key\r\nmore")
    unreachable = "127.0.0.1:1 cannot be reached"
    assert unreachable in create("--password-file", str(file))
    assert unreachable in create("--password-file", "-", standard_input=b"secret\n")
    assert unreachable in create(SPROCKET_USER_PASSWORD="secret")


@pytest.mark.parametrize("content", [b"", b"\nsecret", b"\xff\xfe", b"x" * 5000])
def test_what_is_no_line_of_text_is_refused(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "key"
    file.write_bytes(content)
    told = create("--password-file", str(file))
    assert str(file) in told
    assert "line" in told
    assert "cannot be reached" not in told


def test_the_first_user_of_a_node_has_its_password_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text('a "secret" key\n')
    made = closing_settings(f"root:{file}")
    assert made.pop("broker.first_user") == '{"username": "root", "password": "a \\"secret\\" key"}'
    assert made == {"broker.authentication": True, "broker.authorization": True}
    assert closing_settings(None) == {}
    for text in ("root", f":{file}", "root:"):
        with pytest.raises(UsageError, match="NAME:PASSWORD-FILE"):
            closing_settings(text)
