"""Dead letters as rows that can be searched."""

from __future__ import annotations

import msgspec

from sprocket.console.views.letters import letter_rows, matches
from tests.console.views.test_messages import MESSAGE


def test_a_letter_names_its_topic_and_how_often_it_failed() -> None:
    letter = msgspec.structs.replace(
        MESSAGE, topic="%DLQ%g", retries=3, properties={"RETRY_TOPIC": "orders"}
    )
    (row,) = letter_rows([letter], 1_000_000)
    assert (row["origin"], row["why"]) == ("orders", "its consumers gave it back 3 times")
    assert letter_rows([MESSAGE], 0)[0]["why"] == "its consumers gave it back as dead"


def test_rows_are_found_by_what_they_show() -> None:
    (row,) = letter_rows([MESSAGE], 1_000_000)
    assert matches(row, " HELLO ")
    assert matches(row, "")
    assert matches(row, "o-1")
    assert not matches(row, "nothing")
