"""Entries of the log as JSON."""

from __future__ import annotations

import json
import logging
import sys

import pytest

from sprocket.base.errors import UsageError
from sprocket.cli.running import LOG_FORM, serve_until_signal
from sprocket.runtime.json_logs import JsonFormatter


def entry(text: str, *arguments: object, error: bool = False) -> dict[str, str]:
    try:
        raise ValueError("no \n such thing")
    except ValueError:
        info = sys.exc_info() if error else None
    record = logging.LogRecord("sprocket.x", logging.WARNING, "x.py", 1, text, arguments, info)
    record.created = 1_700_000_000.5
    line = JsonFormatter().format(record)
    assert "\n" not in line
    found: dict[str, str] = json.loads(line)
    return found


def test_an_entry_is_one_line_of_json() -> None:
    assert entry("disk of %s is full\n", '"a"') == {
        "time": "2023-11-14T22:13:20.500+00:00",
        "level": "WARNING",
        "logger": "sprocket.x",
        "message": 'disk of "a" is full\n',
    }


def test_an_error_has_its_stack() -> None:
    assert "ValueError: no \n such thing" in entry("failed", error=True)["error"]


def test_another_form_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LOG_FORM, "xml")
    with pytest.raises(UsageError, match="SPROCKET_LOG is text or json, not 'xml'"):
        serve_until_signal(None, lambda server: "", verbose=False)  # type: ignore[type-var]
