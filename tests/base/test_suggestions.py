"""What a person may have meant."""

from __future__ import annotations

import difflib

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sprocket.base.suggestions import nearest, shown

KNOWN = ("brokerName", "listenPort", "store.path")
#: Names of few letters, so that many are similar to many.
NAMES = st.text(alphabet="abcd.", min_size=1, max_size=12)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("brokerNmae", "; did you mean 'brokerName'?"),
        ("brokername", "; did you mean 'brokerName'? Letter case counts, see character 7"),
        ("zzz", ""),
        (
            "br\u043ekerName",
            "; did you mean 'brokerName'? character 3 is U+043E CYRILLIC SMALL LETTER O",
        ),
        (
            "\ufefflistenPort",
            "; did you mean 'listenPort'? character 1 is U+FEFF ZERO WIDTH NO-BREAK SPACE",
        ),
        ("listen\u00a0Port", "; did you mean 'listenPort'? character 7 is U+00A0 NO-BREAK SPACE"),
        (
            "\uff4cistenPort",
            "; did you mean 'listenPort'? character 1 is U+FF4C FULLWIDTH LATIN SMALL LETTER L",
        ),
        ("\u03c0", "; character 1 is U+03C0 GREEK SMALL LETTER PI"),
    ],
)
def test_the_nearest_name_and_how_it_differs(name: str, hint: str) -> None:
    assert nearest(name, KNOWN) == hint


def test_what_cannot_be_printed_is_shown_by_its_code() -> None:
    assert shown("caf\u00e9") == "'caf\u00e9'"
    assert shown("a\u200bb") == r"'a\u200bb'"
    assert shown("a\udce9") == r"'a\udce9'"
    assert len(shown("x" * 1000)) < 100


@example(name="aaa", known=["aaaaaaa"])  # as similar as may be, and no more
@given(name=NAMES, known=st.lists(NAMES, min_size=1, max_size=20, unique=True))
def test_it_is_the_name_that_difflib_finds_among_all(name: str, known: list[str]) -> None:
    found = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    if name not in known:
        assert nearest(name, known) == (f"; did you mean '{found[0]}'?" if found else "")
