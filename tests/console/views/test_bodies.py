"""Bodies are shown as text whatever they are, in each form that they have."""

from __future__ import annotations

import asyncio
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from sprocket.console.views.bodies import (
    SHOWN_MAX,
    BodyForm,
    body_forms,
    first_line,
    schema_form,
    visible,
)
from sprocket.schemas.errors import BodyMismatch, RegistryUnavailable
from sprocket.schemas.framing import join


def test_json_is_laid_out_and_the_text_and_the_bytes_are_there_too() -> None:
    forms = {form.name: form.text for form in body_forms(b'{"a":[1,"<b>"]}')}
    assert list(forms) == ["JSON", "Text", "Hex"]
    assert forms["JSON"] == '{\n  "a": [\n    1,\n    "<b>"\n  ]\n}'
    assert forms["Hex"].startswith("00000000  7b 22 61 22 3a 5b 31 2c")


def test_what_is_no_text_is_shown_in_hex_only() -> None:
    assert [form.name for form in body_forms(b"\xff\x00\x01")] == ["Hex"]
    assert [form.name for form in body_forms(b"12")] == ["Text", "Hex"]


def test_unseen_characters_and_those_that_turn_the_direction_are_shown() -> None:
    assert visible("a\u202eb\x1b[31m\r\n\tc\u200b") == "a\\u{202e}b\\u{1b}[31m\\u{d}\n\tc\\u{200b}"
    assert first_line("one\n  two\u202e" + "x" * 100, 12) == "one two\\u{2…"


def test_a_long_body_is_cut() -> None:
    form = body_forms(b"x" * (SHOWN_MAX + 1))[0]
    assert form.is_cut
    assert len(form.text) == SHOWN_MAX


def test_deep_json_is_text() -> None:
    assert body_forms(b"[" * 100_000)[0].name == "Text"


class Orders:
    """A codec of the console's tests."""

    content_type = "x"
    prepared = False

    def decode(self, body: bytes) -> Any:
        assert self.prepared
        if body.endswith(b"bad"):
            raise BodyMismatch("3 bytes too few")
        return {"id": 1}

    def encode(self, value: Any) -> bytes:
        raise NotImplementedError

    async def prepare(self, body: bytes | None) -> None:
        if body == join(9, b""):
            raise RegistryUnavailable("the registry is away")
        self.prepared = True


def test_a_body_by_its_schema_comes_first_and_may_fail() -> None:
    def form(body: bytes) -> BodyForm | None:
        return asyncio.run(schema_form(body, Orders()))

    good = form(join(7, b"good"))
    assert good == BodyForm("Schema 7", '{\n  "id": 1\n}')
    assert body_forms(b"good", good)[0] is good
    assert form(join(7, b"bad")) == BodyForm("Schema 7", "3 bytes too few")
    assert form(join(9, b"")) == BodyForm("Schema 9", "the registry is away")
    assert form(b"none") is None


@given(st.binary(max_size=300))
def test_every_body_has_a_form(body: bytes) -> None:
    for form in body_forms(body):
        assert all(each in "\n\t" or each.isprintable() or each.isspace() for each in form.text)
