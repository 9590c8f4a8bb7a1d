"""Keywords are counted; what the counts are for is in `test_json_schema_bodies`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from sprocket.schemas import json_schema_steps as steps


def _nothing(*given: Any) -> Iterator[Any]:
    return iter(())


def test_each_keyword_is_a_step_and_a_larger_body_has_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "_STEPS_MAX", 10)
    keyword = steps.counted({"type": _nothing})["type"]

    for body_bytes, count in ((0, 10), (1, 18)):
        steps.begin(body_bytes)
        for _ in range(count):
            keyword(None, None, None, None)
        with pytest.raises(steps.TooManySteps):
            keyword(None, None, None, None)


def test_what_grows_with_the_square_costs_as_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "_STEPS_MAX", 100)
    keyword = steps.counted({"unevaluatedItems": _nothing})["unevaluatedItems"]
    steps.begin(0)
    keyword(None, False, [1] * 50, None)
    with pytest.raises(steps.TooManySteps):
        keyword(None, False, [1] * 100, None)


def test_keywords_that_look_at_all_others_come_last_at_every_depth() -> None:
    inner = {"unevaluatedItems": False, "type": "array"}
    found = steps.ordered({"unevaluatedProperties": inner, "allOf": [inner, True]})
    assert list(found) == ["allOf", "unevaluatedProperties"]
    assert list(found["allOf"][0]) == list(found["unevaluatedProperties"]) == [
        "type", "unevaluatedItems",
    ]  # fmt: skip
