"""The page shows every operation, and asks nobody for anything."""

from __future__ import annotations

import re

from sprocket.console.api.openapi import document
from sprocket.console.api.reference_page import kind_text, page
from sprocket.console.operations.table import OPERATIONS

DOCUMENT = document(OPERATIONS, "1.0", "/api")


def test_every_operation_and_parameter_is_shown() -> None:
    shown = page(OPERATIONS, DOCUMENT, may_change=True)
    for each in OPERATIONS.values():
        assert f'<section id="{each.name}">' in shown
        for name in each.parameters.__struct_fields__:
            assert f"<code>{name}</code>" in shown


def test_it_needs_nothing_from_elsewhere() -> None:
    shown = page(OPERATIONS, DOCUMENT, may_change=False)
    assert "<script" not in shown
    assert re.findall(r'(?:src|href|url)\s*[=(]\s*"?([^"#>)]+)', shown) == ["/api/openapi.json"]
    assert "off: only what reads" in shown


def test_kinds_are_words() -> None:
    assert kind_text({"type": "integer", "minimum": 1, "maximum": 9}) == "integer, 1 to 9"
    assert kind_text({"anyOf": [{"type": "string"}, {"type": "null"}]}) == "string"
    assert kind_text({"type": "string", "format": "date-time"}) == "time"
    assert kind_text({"type": "array"}) == "list"
    assert kind_text({}) == "anything"
