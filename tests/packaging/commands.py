"""The commands of `sprocket` that files of `deploy/` run: whether they exist with their options."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import typer

from sprocket.cli.main import app
from tests.test_guides import check


@functools.cache
def _whole() -> Any:
    return typer.main.get_command(app)


def check_command(words: Sequence[str]) -> None:
    """Checks the words behind `sprocket`.

    Raises:
        LookupError: there is no such command, or it has no such option.
    """
    check(_whole(), list(words))
