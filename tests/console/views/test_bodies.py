"""Bodies are shown as text whatever they are, in each form that they have."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sprocket.console.views.bodies import SHOWN_MAX, body_forms, first_line, visible


def test_json_is_laid_out_and_the_text_and_the_bytes_are_there_too() -> None:
    forms = {form.name: form.text for form in body_forms("t", b'{"a":[1,"<b>"]}')}
    assert list(forms) == ["JSON", "Text", "Hex"]
    assert forms["JSON"] == '{\n  "a": [\n    1,\n    "<b>"\n  ]\n}'
    assert forms["Hex"].startswith("00000000  7b 22 61 22 3a 5b 31 2c")


def test_what_is_no_text_is_shown_in_hex_only() -> None:
    assert [form.name for form in body_forms("t", b"\xff\x00\x01")] == ["Hex"]
    assert [form.name for form in body_forms("t", b"12")] == ["Text", "Hex"]


def test_unseen_characters_and_those_that_turn_the_direction_are_shown() -> None:
    assert visible("a\u202eb\x1b[31m\r\n\tc\u200b") == "a\\u{202e}b\\u{1b}[31m\\u{d}\n\tc\\u{200b}"
    assert first_line("one\n  two\u202e" + "x" * 100, 12) == "one two\\u{2…"


def test_a_long_body_is_cut() -> None:
    form = body_forms("t", b"x" * (SHOWN_MAX + 1))[0]
    assert form.is_cut
    assert len(form.text) == SHOWN_MAX


def test_deep_json_is_text() -> None:
    assert body_forms("t", b"[" * 100_000)[0].name == "Text"


def test_a_decoder_of_schemas_comes_first_and_may_fail() -> None:
    def decode(topic: str, body: bytes) -> str | None:
        if topic == "none":
            return None
        if body == b"bad":
            raise ValueError("3 bytes too few")
        return f"{topic}!"

    decoders = {"Avro": decode}
    assert body_forms("t", b"good", decoders)[0].text == "t!"
    assert body_forms("t", b"bad", decoders)[0].text == (
        "it does not fit the schema: 3 bytes too few"
    )
    assert [form.name for form in body_forms("none", b"x", decoders)] == ["Text", "Hex"]


@given(st.binary(max_size=300))
def test_every_body_has_a_form(body: bytes) -> None:
    for form in body_forms("t", body):
        assert all(each in "\n\t" or each.isprintable() or each.isspace() for each in form.text)
