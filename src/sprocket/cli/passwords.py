"""Where a command gets a password from: a file, an environment variable, or a prompt.

An argument is none of these: everybody on the machine can read the arguments of a process, and the
shell writes them into its history.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from sprocket.base.errors import UsageError

VARIABLE = "SPROCKET_USER_PASSWORD"
_BYTES_MAX = 4096

PasswordFile = Annotated[
    Path | None,
    typer.Option(
        "--password-file",
        metavar="FILE",
        help=f"File whose first line is the password; - reads standard input. Without it, the "
        f"variable {VARIABLE} has it, or it is asked for.",
    ),
]


def password_from(file: Path | None, question: str) -> str:
    """The password.

    Args:
        file: `-` for standard input; None for the variable, or else a prompt.
        question: for the prompt.

    Raises:
        UsageError: there is none, or it is no text.
    """
    if file is not None:
        return _first_line(file)
    if found := os.environ.get(VARIABLE):
        return found
    if not sys.stdin.isatty():
        raise UsageError(
            f"there is no terminal to ask for the password: give --password-file FILE, or set "
            f"{VARIABLE}"
        )
    return str(typer.prompt(question, hide_input=True, confirmation_prompt=True))


def closing_settings(user: str | None) -> dict[str, object]:
    """The settings that `--user NAME:PASSWORD-FILE` makes: a closed broker and its first user.

    Raises:
        UsageError: it has another form, or the file has no password.
        OSError: the file cannot be read.
    """
    if user is None:
        return {}
    name, _, file = user.partition(":")
    if not name or not file:
        raise UsageError(f"--user takes NAME:PASSWORD-FILE, not {user!r}")
    first = {"username": name, "password": _first_line(Path(file))}
    return {
        "broker.authentication": True,
        "broker.authorization": True,
        "broker.first_user": json.dumps(first),
    }


def _first_line(file: Path) -> str:
    if str(file) == "-":
        data = sys.stdin.buffer.readline(_BYTES_MAX)
    else:
        with file.open("rb") as stream:
            data = stream.readline(_BYTES_MAX)
    try:
        text = data.decode("utf-8-sig").rstrip("\r\n")
    except UnicodeDecodeError:
        raise UsageError(f"{file}: a password is a line of UTF-8") from None
    if not text or len(data) >= _BYTES_MAX:
        raise UsageError(f"{file}: the first line is to be the password")
    return text
