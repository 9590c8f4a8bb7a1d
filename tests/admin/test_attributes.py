"""Changes of attributes as requests carry them."""

from __future__ import annotations

from sprocket.admin.attributes import changed, signed


def test_what_is_named_changes_and_the_rest_stays() -> None:
    before = {"a": "1", "b": "2"}
    assert changed(before, None) == before
    assert changed(before, {"b": None, "c": "3"}) == {"a": "1", "c": "3"}
    assert changed({}, {"a": None}) == {}


def test_a_request_names_only_what_differs() -> None:
    assert signed({"a": "1", "b": "2"}, {"a": "1", "c": "3"}) == {"-b": "", "+c": "3"}
    assert signed({}, {}) == signed({"a": "1"}, {"a": "1"}) == {}
    assert signed({"a": "1"}, {"a": "2"}) == {"+a": "2"}
