"""The page of the log-in shows what it is given as text, and leads only to this site."""

from __future__ import annotations

import pytest

from sprocket.console.web.login_page import login_page, path_within


def test_what_was_given_is_text() -> None:
    page = login_page(next_path='/"><script>', user='"><b>', fault="<img src=x>")
    assert "<script" not in page
    assert "<img" not in page
    assert '"><b>' not in page


@pytest.mark.parametrize(
    ("given", "path"),
    [
        (None, "/"), ("", "/"), ("/topics?search=a", "/topics?search=a"), ("//evil.example", "/"),
        ("https://evil.example", "/"), ("/\\evil.example", "/"), ("/a\r\nSet-Cookie: x", "/"),
        ("javascript:alert(1)", "/"), ("/" + "a" * 3_000, "/"),
    ],
)  # fmt: skip
def test_a_log_in_leads_to_a_page_of_this_site(given: str | None, path: str) -> None:
    assert path_within(given) == path
