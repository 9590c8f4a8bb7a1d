"""Running the command line inside the test's process."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import NamedTuple

import pytest

from sprocket.cli.main import main


class Outcome(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


def sprocket(*arguments: str, standard_input: bytes = b"", **environment: str) -> Outcome:
    """Runs `sprocket` with arguments, in an environment without settings of its own."""
    out, err = io.StringIO(), io.StringIO()
    code = 0
    with (
        pytest.MonkeyPatch.context() as patch,
        redirect_stdout(out),
        redirect_stderr(err),
        _input(standard_input),
    ):
        for name in list(os.environ):
            if name.startswith("SPROCKET_") or name == "NAMESRV_ADDR":
                patch.delenv(name)
        for name, value in {"TERM": "dumb", "COLUMNS": "200", **environment}.items():
            patch.setenv(name, value)
        patch.setattr(sys, "argv", ["sprocket", *arguments])
        try:
            main()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    return Outcome(code, out.getvalue(), err.getvalue())


@contextmanager
def _input(content: bytes) -> Iterator[None]:
    before, sys.stdin = sys.stdin, io.TextIOWrapper(io.BytesIO(content))
    try:
        yield
    finally:
        sys.stdin = before
