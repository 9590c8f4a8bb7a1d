"""The page of rights says what is checked."""

from tests.auth.rights_page import PAGE, page


def test_the_page_is_what_the_rules_say() -> None:
    assert PAGE.read_text() == page(), "python -m tests.auth.rights_page writes it"
